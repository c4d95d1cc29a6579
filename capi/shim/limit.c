// Barriers, and the limits of communicators.
#include "call.h"
#include "check.h"
#include "core.h"
#include "error.h"
#include "stream.h"

enum { BOOL = 14, XOR = 8 }; // coll.Bool, coll.Xor: core.BarrierCall says the same

static char nothing; // what barriers combine: always 0, whoever writes it

ncclResult_t hccl_fill_barrier(const struct hccl_call* a, struct hccl_item* item) {
  item->send = item->recv = &nothing;
  item->count = 1;
  item->type = BOOL;
  item->red = XOR;
  return hccl_take_stream(a->comm, a->who, a->stream, &item->stream);
}

ncclResult_t hcclBarrier(int64_t timeout, ncclComm_t comm, cudaStream_t stream) {
  return hccl_call(&(struct hccl_call){.func = HCCL_BARRIER, .who = "hcclBarrier", .comm = comm, .stream = stream, .limit = timeout});
}

static ncclResult_t limit(ncclComm_t comm, const char* who, int64_t set, int64_t* get) {
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  const struct hccl_core_table* table = hccl_core();
  return table != NULL ? (ncclResult_t)table->comm_limit(hccl_number(c, comm), set, get) : hccl_no_core();
}

ncclResult_t hcclCommSetTimeout(ncclComm_t comm, int64_t timeout) {
  return limit(comm, "hcclCommSetTimeout", timeout < 0 ? 0 : timeout, NULL);
}

ncclResult_t hcclCommGetTimeout(ncclComm_t comm, int64_t* timeout) {
  static const char who[] = "hcclCommGetTimeout";
  if (timeout == NULL) return hccl_fail(comm, ncclInvalidArgument, "%s: timeout is NULL", who);
  return limit(comm, who, 0, timeout);
}
