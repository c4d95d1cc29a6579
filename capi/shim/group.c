#include "group.h"
#include "core.h"
#include "error.h"
#include "run.h"
#include "sim.h"
#include <stdlib.h>
#include <string.h>

struct hccl_kept {
  struct hccl_kept* next;
  char bytes[];
};

static struct hccl_group* open_group(void) {
  struct hccl_thread* t = hccl_thread_if();
  return t != NULL && t->group.depth > 0 ? &t->group : NULL;
}

static ncclResult_t no_memory(const char* who) { return hccl_fail(NULL, ncclSystemError, "%s: no memory for a group", who); }

// keep points *p at a copy of its n bytes that lives as long as the group's items.
static int keep(struct hccl_group* g, const void** p, size_t n) {
  if (*p == NULL) return 1;
  struct hccl_kept* k = malloc(sizeof *k + n);
  if (k == NULL) return 0;
  memcpy(k->bytes, *p, n);
  k->next = g->kept;
  g->kept = k;
  *p = k->bytes;
  return 1;
}

static int keep_text(struct hccl_group* g, const char** p) {
  return *p == NULL || keep(g, (const void**)p, strlen(*p) + 1);
}

static int keep_all(struct hccl_group* g, struct hccl_item* i) {
  size_t n = (size_t)i->nranks * sizeof(uint64_t); // the V forms say nranks for this
  return keep_text(g, &i->algo) && keep_text(g, &i->name) && keep(g, &i->ids, (size_t)i->nids * NCCL_UNIQUE_ID_BYTES) &&
         keep(g, (const void**)&i->scounts, n) && keep(g, (const void**)&i->sdispls, n) &&
         keep(g, (const void**)&i->rcounts, n) && keep(g, (const void**)&i->rdispls, n);
}

static int make_room(struct hccl_group* g) {
  if (g->count < g->room) return 1;
  size_t room = g->room ? 2 * g->room : 16;
  struct hccl_item* items = realloc(g->items, room * sizeof *items);
  if (items == NULL) return 0;
  g->items = items;
  struct hccl_extra* extras = realloc(g->extras, room * sizeof *extras);
  if (extras == NULL) return 0;
  g->extras = extras;
  g->room = room;
  return 1;
}

ncclResult_t hccl_start(struct hccl_item* item, const struct hccl_extra* extra) {
  static const struct hccl_extra none;
  if (extra == NULL) extra = &none;
  struct hccl_group* g = open_group();
  if (g == NULL) return hccl_run_one(item, extra);
  if (!make_room(g) || !keep_all(g, item)) return no_memory("a call in a group");
  g->items[g->count] = *item;
  g->extras[g->count++] = *extra;
  return ncclSuccess;
}

ncclResult_t hccl_noted(ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return result;
  struct hccl_group* g = open_group();
  if (g != NULL && g->error == ncclSuccess) g->error = result;
  return result;
}

enum { KEPT_ROOM = 256 }; // items of a thread's arrays that stay for its next group

// forget leaves the group empty, without a look at what became of its items.
static void forget(struct hccl_group* g) {
  while (g->kept != NULL) {
    struct hccl_kept* k = g->kept;
    g->kept = k->next;
    free(k);
  }
  if (g->room > KEPT_ROOM) {
    free(g->items);
    free(g->extras);
    g->items = NULL, g->extras = NULL, g->room = 0;
  }
  g->count = 0;
  g->error = ncclSuccess;
}

void hccl_group_drop(struct hccl_group* g) {
  for (size_t k = 0; k < g->count; k++) {
    g->items[k].result = ncclInvalidUsage;
    hccl_settle(&g->items[k], &g->extras[k]);
  }
  forget(g);
  g->depth = 0;
}

ncclResult_t hccl_group_open(const char* who) {
  struct hccl_thread* t = hccl_thread();
  if (t == NULL) return no_memory(who);
  t->group.depth++;
  return ncclSuccess;
}

// leave ends one level and returns the group if it was the last; NULL with *result set otherwise.
static struct hccl_group* leave(const char* who, ncclResult_t* result) {
  struct hccl_group* g = open_group();
  *result = ncclSuccess;
  if (g == NULL) {
    *result = hccl_check_fork(who);
    if (*result == ncclSuccess)
      *result = hccl_fail(NULL, ncclInvalidUsage, "%s: no group is open in this thread: call ncclGroupStart here first", who);
    return NULL;
  }
  if (--g->depth > 0) return NULL;
  *result = g->error;
  return g;
}

ncclResult_t hccl_group_close(const char* who) {
  ncclResult_t result;
  struct hccl_group* g = leave(who, &result);
  if (g == NULL) return result;
  if (result != ncclSuccess) {
    hccl_group_drop(g);
    return result;
  }
  // The core may call the user back, or the thread may end inside: the items are no longer the group's while they run.
  struct hccl_group now = *g;
  memset(g, 0, sizeof *g);
  result = now.count == 1 ? hccl_run_one(now.items, now.extras) : hccl_run_all(now.items, now.extras, now.count);
  forget(&now);
  *g = now;
  return result;
}

HCCL_API(ncclResult_t, ncclGroupStart, (void)) { return hccl_group_open("ncclGroupStart"); }
HCCL_API(ncclResult_t, ncclGroupEnd, (void)) { return hccl_group_close("ncclGroupEnd"); }

HCCL_API(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t* info)) {
  static const char who[] = "ncclGroupSimulateEnd";
  ncclResult_t result;
  struct hccl_group* g = leave(who, &result);
  if (g == NULL) return result;
  if (result == ncclSuccess) result = hccl_sim_check(info, who);
  if (result == ncclSuccess) result = hccl_simulate(g, info);
  hccl_group_drop(g);
  return result;
}
