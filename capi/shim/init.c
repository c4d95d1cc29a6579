// Making communicators. The handle is there before the core is called, so that a non-blocking caller has it at once and a watcher
// can abort a blocking one; if nothing comes of it, it is taken back and the caller finds NULL.
#include "coll.h"
#include "config.h"
#include "core.h"
#include "error.h"
#include "group.h"
#include "meet.h"
#include <stdlib.h>
#include <string.h>

static ncclResult_t new_id(ncclUniqueId* id, ncclComm_t comm, const char* who) {
  char why[512] = "";
  if (id == NULL) return hccl_fail(comm, ncclInvalidArgument, "%s: id is NULL", who);
  ncclResult_t e = hccl_check_fork(who);
  if (e != ncclSuccess) return e;
  hccl_watch_forks();
  e = (ncclResult_t)hccl_meet_new_id((unsigned char*)id->internal, why, sizeof why);
  return e == ncclSuccess ? e : hccl_fail(comm, e, "%s: %s", who, why);
}

// take_handle makes the entry of a new communicator and shows it to the caller.
static struct hccl_comm* take_handle(const struct hccl_settings* s, struct hccl_item* item, struct hccl_extra* extra,
                                     const char* who) {
  struct hccl_comm* c = hccl_comm_new(who);
  if (c == NULL) return NULL;
  c->device = item->device;
  c->blocking = s->blocking;
  c->min_channels = s->min_channels;
  c->max_channels = s->max_channels;
  pthread_mutex_lock(&c->mu);
  if (s->name != NULL) strncat(c->name, s->name, sizeof c->name - 1);
  pthread_mutex_unlock(&c->mu);
  item->comm = hccl_handle(c);
  item->new_id = atomic_load(&c->number);
  *extra->out = item->comm;
  return c;
}

static void take_settings(const struct hccl_settings* s, struct hccl_item* item) {
  item->blocking = s->blocking;
  item->min_channels = s->min_channels;
  item->max_channels = s->max_channels;
  item->name = s->name;
}

// join lets this process answer for ids where that falls to it: see meet.h. All ids of an NCCL_COMM_ID are one.
static ncclResult_t join(const ncclUniqueId* ids, int nids, int rank, const char* who) {
  char why[512] = "";
  int e = 0;
  for (int k = 0; k < nids && e == 0; k++) {
    if (k > 0 && memcmp(&ids[k], &ids[k - 1], sizeof ids[k]) == 0) continue;
    e = hccl_meet_join((const unsigned char*)ids[k].internal, rank, why, sizeof why);
  }
  return e == 0 ? ncclSuccess : hccl_fail(NULL, (ncclResult_t)e, "%s: %s", who, why);
}

static ncclResult_t check_init(ncclComm_t* comm, int nranks, int rank, const ncclUniqueId* ids, int nids, const char* who) {
  if (comm == NULL) return hccl_fail(NULL, ncclInvalidArgument, "%s: comm is NULL", who);
  *comm = NULL;
  if (nranks < 1) return hccl_fail(NULL, ncclInvalidArgument, "%s: nranks %d is not positive", who, nranks);
  if (rank < 0 || rank >= nranks)
    return hccl_fail(NULL, ncclInvalidArgument, "%s: rank %d is none of %d ranks (0 to %d)", who, rank, nranks, nranks - 1);
  if (nids < 1 || nids > nranks) return hccl_fail(NULL, ncclInvalidArgument, "%s: %d ids for %d ranks", who, nids, nranks);
  if (ids == NULL) return hccl_fail(NULL, ncclInvalidArgument, "%s: ids is NULL", who);
  return ncclSuccess;
}

static ncclResult_t init(ncclComm_t* comm, int nranks, int rank, const ncclUniqueId* ids, int nids, int device,
                         const ncclConfig_t* config, const char* who) {
  struct hccl_settings s;
  ncclResult_t e = check_init(comm, nranks, rank, ids, nids, who);
  if (e == ncclSuccess) e = hccl_config_read(config, NULL, who, &s);
  if (e != ncclSuccess) return e;
  if (hccl_core() == NULL) return hccl_no_core();
  e = join(ids, nids, rank, who);
  if (e != ncclSuccess) return e;
  struct hccl_item item = {.kind = HCCL_ITEM_INIT, .nranks = nranks, .rank = rank, .device = device, .nids = nids, .ids = ids};
  struct hccl_extra extra = {.out = comm};
  take_settings(&s, &item);
  struct hccl_comm* c = take_handle(&s, &item, &extra, who);
  if (c == NULL) return ncclSystemError;
  atomic_store(&c->rank, rank);
  atomic_store_explicit(&c->nranks, nranks, memory_order_release);
  return hccl_start(&item, &extra);
}

static ncclResult_t init_all(ncclComm_t* comms, int n, const int* devices) {
  static const char who[] = "ncclCommInitAll";
  ncclUniqueId id;
  if (comms == NULL) return hccl_fail(NULL, ncclInvalidArgument, "%s: comms is NULL", who);
  if (n < 1) return hccl_fail(NULL, ncclInvalidArgument, "%s: count %d is not positive", who, n);
  for (int k = 0; k < n; k++) {
    comms[k] = NULL;
    if (devices != NULL && devices[k] < 0)
      return hccl_fail(NULL, ncclInvalidArgument, "%s: device %d of rank %d is negative", who, devices[k], k);
  }
  ncclResult_t e = new_id(&id, NULL, who);
  if (e == ncclSuccess) e = hccl_group_open(who);
  if (e != ncclSuccess) return e;
  for (int k = 0; k < n && e == ncclSuccess; k++)
    e = hccl_noted(init(&comms[k], n, k, &id, 1, devices != NULL ? devices[k] : k, NULL, who));
  ncclResult_t end = hccl_group_close(who);
  return e != ncclSuccess ? e : end;
}

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t* child, const ncclConfig_t* config) {
  static const char who[] = "ncclCommSplit";
  struct hccl_comm* parent = hccl_need(comm, who);
  if (parent == NULL) return ncclInvalidArgument;
  if (child == NULL) return hccl_fail(comm, ncclInvalidArgument, "%s: child is NULL", who);
  *child = NULL;
  struct hccl_settings s;
  hccl_config_of(parent, &s);
  ncclResult_t e = config != NULL ? hccl_config_read(config, comm, who, &s) : ncclSuccess;
  if (e != ncclSuccess) return e;
  if (hccl_core() == NULL) return hccl_no_core();
  struct hccl_item item = {.kind = HCCL_ITEM_SPLIT, .func = HCCL_SPLIT, .id = hccl_number(parent, comm), .color = color, .key = key,
                           .device = parent->device};
  struct hccl_extra extra = {.out = child};
  take_settings(&s, &item);
  if (color < 0) item.new_id = hccl_new_number(); // also one that cannot be: the core tells the other ranks, who wait for this one
  else if (take_handle(&s, &item, &extra, who) == NULL) return ncclSystemError;
  return hccl_start(&item, &extra);
}

HCCL_API(ncclResult_t, ncclGetUniqueId, (ncclUniqueId* id)) { return new_id(id, NULL, "ncclGetUniqueId"); }

HCCL_API(ncclResult_t, ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId* id)) {
  static const char who[] = "ncclCommGetUniqueId";
  return hccl_need(comm, who) != NULL ? new_id(id, comm, who) : ncclInvalidArgument;
}

HCCL_API(ncclResult_t, ncclCommInitRank, (ncclComm_t* comm, int nranks, ncclUniqueId id, int rank)) {
  return hccl_noted(init(comm, nranks, rank, &id, 1, 0, NULL, "ncclCommInitRank"));
}

HCCL_API(ncclResult_t, ncclCommInitRankConfig,
         (ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config)) {
  return hccl_noted(init(comm, nranks, rank, &id, 1, 0, config, "ncclCommInitRankConfig"));
}

HCCL_API(ncclResult_t, ncclCommInitRankScalable,
         (ncclComm_t* comm, int nranks, int rank, int nids, ncclUniqueId* ids, ncclConfig_t* config)) {
  return hccl_noted(init(comm, nranks, rank, ids, nids, 0, config, "ncclCommInitRankScalable"));
}

HCCL_API(ncclResult_t, ncclCommInitAll, (ncclComm_t* comms, int count, const int* devices)) {
  return hccl_noted(init_all(comms, count, devices));
}

HCCL_API(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config)) {
  return hccl_noted(split(comm, color, key, child, config));
}
