// Questions to a communicator, answered here without entering Go, and its end.
#include "core.h"
#include "error.h"
#include "group.h"

// question finds the communicator of a query whose answer goes to out.
static struct hccl_comm* question(ncclComm_t comm, const void* out, const char* who, const char* what) {
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL || out != NULL) return c;
  hccl_fail(comm, ncclInvalidArgument, "%s: %s is NULL", who, what);
  return NULL;
}

// size says how many ranks there are, or that a split or init has not come so far.
static ncclResult_t size(struct hccl_comm* c, ncclComm_t comm, const char* who, int* nranks) {
  *nranks = atomic_load_explicit(&c->nranks, memory_order_acquire);
  if (*nranks > 0) return ncclSuccess;
  return hccl_fail(comm, ncclInProgress, "%s: the communicator is still being made: ask ncclCommGetAsyncError", who);
}

HCCL_API(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count)) {
  struct hccl_comm* c = question(comm, count, "ncclCommCount", "count");
  return c != NULL ? size(c, comm, "ncclCommCount", count) : ncclInvalidArgument;
}

HCCL_API(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank)) {
  struct hccl_comm* c = question(comm, rank, "ncclCommUserRank", "rank");
  int nranks;
  if (c == NULL) return ncclInvalidArgument;
  ncclResult_t e = size(c, comm, "ncclCommUserRank", &nranks);
  if (e == ncclSuccess) *rank = atomic_load_explicit(&c->rank, memory_order_relaxed);
  return e;
}

HCCL_API(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device)) {
  struct hccl_comm* c = question(comm, device, "ncclCommCuDevice", "device");
  if (c == NULL) return ncclInvalidArgument;
  *device = c->device;
  return ncclSuccess;
}

HCCL_API(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* state)) {
  struct hccl_comm* c = question(comm, state, "ncclCommGetAsyncError", "state");
  if (c == NULL) return ncclInvalidArgument;
  const struct hccl_core_table* table = hccl_core();
  if (table == NULL) return hccl_no_core();
  int found = ncclSuccess;
  ncclResult_t e = (ncclResult_t)table->async_error(hccl_number(c, comm), &found);
  *state = e == ncclSuccess ? (ncclResult_t)found : e;
  return e;
}

HCCL_API(ncclResult_t, ncclCommFinalize, (ncclComm_t comm)) {
  if (comm == NULL) return ncclSuccess;
  struct hccl_comm* c = hccl_need(comm, "ncclCommFinalize");
  if (c == NULL) return hccl_noted(ncclInvalidArgument);
  const struct hccl_core_table* table = hccl_core();
  return hccl_noted(table != NULL ? (ncclResult_t)table->finalize(hccl_number(c, comm)) : hccl_no_core());
}

// end lets go of the handle whatever the core says: the caller has no use for it any more. Two threads may end one communicator,
// one of them by Abort because the other waits: the core knows it by its number, and the handle goes once.
static ncclResult_t end(ncclComm_t comm, const char* who, int (*core_end)(const struct hccl_core_table*, uint64_t)) {
  if (comm == NULL) return ncclSuccess;
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  const struct hccl_core_table* table = hccl_core();
  if (table == NULL) return hccl_no_core();
  ncclResult_t e = (ncclResult_t)core_end(table, hccl_number(c, comm));
  hccl_comm_release(comm);
  return e;
}

static int destroy(const struct hccl_core_table* table, uint64_t id) { return table->destroy(id); }
static int abort_(const struct hccl_core_table* table, uint64_t id) { return table->abort(id); }

HCCL_API(ncclResult_t, ncclCommDestroy, (ncclComm_t comm)) { return hccl_noted(end(comm, "ncclCommDestroy", destroy)); }
HCCL_API(ncclResult_t, ncclCommAbort, (ncclComm_t comm)) { return hccl_noted(end(comm, "ncclCommAbort", abort_)); }
