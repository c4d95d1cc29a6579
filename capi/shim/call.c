#include "call.h"
#include "core.h"
#include "error.h"
#include "group.h"
#include "stream.h"
#include <stdlib.h>
#include <string.h>

static ncclResult_t fill_kind(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item, struct hccl_extra* extra,
                              struct hccl_packed* packed) {
  switch (a->func) {
  case HCCL_ALL_GATHER_V: case HCCL_REDUCE_SCATTER_V: case HCCL_ALL_TO_ALL_V:
    return hccl_fill_vector(a, c, item, extra, packed);
  case HCCL_SEND: case HCCL_RECV: return hccl_fill_message(a, c, item);
  case HCCL_BARRIER: return hccl_fill_barrier(a, item);
  default: return hccl_fill_collective(a, c, item, extra);
  }
}

ncclResult_t hccl_fill(const struct hccl_call* a, struct hccl_item* item, struct hccl_extra* extra, struct hccl_packed* packed) {
  struct hccl_comm* c = hccl_need(a->comm, a->who);
  if (c == NULL) return ncclInvalidArgument;
  item->kind = HCCL_ITEM_CALL;
  item->func = a->func;
  item->comm = a->comm;
  item->id = hccl_number(c, a->comm);
  item->send = a->send;
  item->recv = a->recv;
  item->count = a->count;
  item->limit = a->limit;
  return fill_kind(a, c, item, extra, packed);
}

void hccl_packed_free(struct hccl_packed* packed) {
  free(packed->send);
  free(packed->recv);
}

ncclResult_t hccl_call(const struct hccl_call* a) {
  struct hccl_item item = {0};
  struct hccl_extra extra = {0};
  struct hccl_packed packed = {0};
  ncclResult_t e = hccl_fill(a, &item, &extra, &packed);
  if (e == ncclSuccess) e = hccl_start(&item, &extra);
  hccl_packed_free(&packed);
  return hccl_noted(e);
}

// read_struct copies what the caller's struct has. Members behind it are not set; what it has behind ours must not be.
static ncclResult_t read_struct(const hcclCall_t* from, hcclCall_t* to, ncclComm_t comm, const char* who) {
  enum { FIRST = sizeof(hcclCall_t), LARGEST = 1024 };
  if (from == NULL) return hccl_fail(comm, ncclInvalidArgument, "%s: call is NULL", who);
  if (from->size < FIRST || from->size > LARGEST || from->magic != HCCL_CALL_MAGIC)
    return hccl_fail(comm, ncclInvalidArgument, "%s: call has size %zu and magic 0x%x: start from HCCL_CALL_INITIALIZER", who,
                     from->size, from->magic);
  for (size_t k = sizeof *to; k < from->size; k++)
    if (((const char*)from)[k] != 0)
      return hccl_fail(comm, ncclInvalidArgument, "%s: call sets a member at offset %zu that this library does not know", who, k);
  memcpy(to, from, sizeof *to);
  return ncclSuccess;
}

ncclResult_t hccl_read_call(const hcclCall_t* call, ncclComm_t comm, const char* who, struct hccl_call* a) {
  hcclCall_t k;
  ncclResult_t e = read_struct(call, &k, comm, who);
  if (e != ncclSuccess) return e;
  int func = (int)k.func, is_message = func == HCCL_SEND || func == HCCL_RECV;
  if (func < 0 || func > HCCL_BARRIER || func == HCCL_SPLIT)
    return hccl_fail(comm, ncclInvalidArgument, "%s: func %d is none of hcclFunc_t", who, func);
  if (k.config != NULL && (is_message || func == HCCL_BARRIER || (func >= HCCL_ALL_GATHER_V && func <= HCCL_ALL_TO_ALL_V)))
    return hccl_fail(comm, ncclInvalidArgument, "%s: config is for collectives with one count", who);
  *a = (struct hccl_call){.func = (enum hccl_func)func, .who = who, .send = k.send, .recv = k.recv, .count = k.count,
                          .type = (int)k.type, .op = (int)k.op, .root = k.root, .tag = k.tag, .is_ours = 1, .status = k.status,
                          .scounts = k.sendCounts,
                          .sdispls = k.sendDispls, .rcounts = k.recvCounts, .rdispls = k.recvDispls, .comm = comm,
                          .config = k.config, .limit = k.timeout};
  return ncclSuccess;
}

ncclResult_t hcclRun(const hcclCall_t* call, ncclComm_t comm, cudaStream_t stream) {
  struct hccl_call a;
  ncclResult_t e = hccl_read_call(call, comm, "hcclRun", &a);
  if (e != ncclSuccess) return hccl_noted(e);
  a.stream = stream;
  return hccl_call(&a);
}
