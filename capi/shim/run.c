#include "run.h"
#include "core.h"
#include "redop.h"
#include "sim.h"

enum { UNSET = -1 };

void hccl_settle(const struct hccl_item* item, const struct hccl_extra* extra) {
  if (item->kind == HCCL_ITEM_CALL || item->result == ncclSuccess || item->result == ncclInProgress) return;
  if (item->comm != NULL) hccl_comm_release(item->comm);
  if (extra->out != NULL) *extra->out = NULL;
}

// take_factor reads what is to be read when the operation starts, not when it was asked for: on a stream the core does that.
static void take_factor(struct hccl_item* item, const struct hccl_extra* extra) {
  if (extra->factor == NULL) return;
  if (item->stream != NULL) item->factor = extra->factor;
  else item->scale = hccl_factor(extra->factor, item->type);
}

static void prepare(struct hccl_item* item, const struct hccl_extra* extra) {
  take_factor(item, extra);
  item->result = UNSET;
}

// try_fast returns -1 where the operation must go the long way. The handle is looked at again once we are counted in: the entry
// may have become another communicator's since the arguments were checked.
static int try_fast(const struct hccl_core_table* table, const struct hccl_item* item) {
  struct hccl_comm* c = item->kind == HCCL_ITEM_CALL ? hccl_find(item->comm) : NULL;
  if (c == NULL || atomic_load_explicit(&c->hot, memory_order_relaxed) == NULL) return -1;
  int result = -1;
  atomic_fetch_add(&c->inside, 1);
  void* hot = atomic_load(&c->hot);
  if (hot != NULL && atomic_load(&c->handle) == (uintptr_t)item->comm) result = table->fast(hot, item);
  atomic_fetch_sub(&c->inside, 1);
  return result;
}

ncclResult_t hccl_run_one(struct hccl_item* item, const struct hccl_extra* extra) {
  const struct hccl_core_table* table = hccl_core();
  if (table != NULL) {
    take_factor(item, extra);
    int result = try_fast(table, item);
    if (result >= 0) return (ncclResult_t)result;
  }
  return hccl_run_all(item, extra, 1);
}

ncclResult_t hccl_run_all(struct hccl_item* items, const struct hccl_extra* extras, size_t n) {
  if (n == 0) return ncclSuccess;
  const struct hccl_core_table* table = hccl_core();
  for (size_t k = 0; k < n; k++) prepare(&items[k], &extras[k]);
  ncclResult_t result = table != NULL ? (ncclResult_t)table->enqueue(items, n) : hccl_no_core();
  for (size_t k = 0; k < n; k++) {
    if (items[k].result == UNSET) items[k].result = result;
    hccl_settle(&items[k], &extras[k]);
  }
  return result;
}

ncclResult_t hccl_simulate(struct hccl_group* g, ncclSimInfo_t* info) {
  float microseconds = 0;
  const struct hccl_core_table* table = hccl_core();
  if (table == NULL) return hccl_no_core();
  for (size_t k = 0; k < g->count; k++) prepare(&g->items[k], &g->extras[k]);
  ncclResult_t result = g->count > 0 ? (ncclResult_t)table->simulate(g->items, g->count, &microseconds) : ncclSuccess;
  if (result == ncclSuccess) hccl_sim_fill(info, microseconds);
  return result;
}
