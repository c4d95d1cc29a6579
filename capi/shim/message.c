// Messages. One that both sides give in one group to themselves is matched by the core, as all others.
#include "call.h"
#include "check.h"
#include "error.h"
#include "stream.h"

_Static_assert(sizeof(hcclStatus_t) == sizeof(struct hccl_status) && offsetof(hcclStatus_t, tag) == offsetof(struct hccl_status, tag) &&
               offsetof(hcclStatus_t, bytes) == offsetof(struct hccl_status, bytes), "one status for both");

// check_tag judges the tag, and whether the peer may be any rank.
static ncclResult_t check_tag(const struct hccl_call* a, int nranks) {
  int takes_any = a->func == HCCL_RECV && a->is_ours;
  if (a->tag < (takes_any ? HCCL_ANY_TAG : 0))
    return hccl_fail(a->comm, ncclInvalidArgument, "%s: tag %d is negative%s", a->who, a->tag,
                     a->tag == HCCL_ANY_TAG ? ": HCCL_ANY_TAG is for receives" : "");
  if (takes_any && a->root == HCCL_ANY_SOURCE) return ncclSuccess;
  return hccl_check_rank(a->comm, a->who, "peer", a->root, nranks);
}

ncclResult_t hccl_fill_message(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item) {
  size_t bytes;
  int sends = a->func == HCCL_SEND, nranks = atomic_load_explicit(&c->nranks, memory_order_acquire);
  const void* buff = sends ? a->send : a->recv;
  item->root = a->root;
  item->tag = a->tag;
  item->up_to = !sends && a->is_ours;
  item->status = sends ? NULL : (struct hccl_status*)a->status;
  ncclResult_t e = hccl_take_stream(a->comm, a->who, a->stream, &item->stream);
  if (e == ncclSuccess) e = hccl_take_type(a->comm, a->who, a->type, &item->type);
  if (e == ncclSuccess) e = check_tag(a, nranks);
  if (e == ncclSuccess) e = hccl_check_extent(a->comm, a->who, buff, a->count, hccl_type_size(item->type), 1, &bytes);
  if (e == ncclSuccess && a->count > 0)
    e = hccl_check_pointer(a->comm, a->who, sends ? "the send buffer" : "the receive buffer", buff);
  return e;
}

HCCL_API(ncclResult_t, ncclSend,
         (const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return hccl_call(&(struct hccl_call){.func = HCCL_SEND, .who = "ncclSend", .send = send, .count = count, .type = (int)type,
                                       .root = peer, .comm = comm, .stream = stream});
}

HCCL_API(ncclResult_t, ncclRecv,
         (void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return hccl_call(&(struct hccl_call){.func = HCCL_RECV, .who = "ncclRecv", .recv = recv, .count = count, .type = (int)type,
                                       .root = peer, .comm = comm, .stream = stream});
}

ncclResult_t hcclSend(const void* send, uint64_t count, ncclDataType_t type, int peer, int tag, ncclComm_t comm, cudaStream_t stream) {
  return hccl_call(&(struct hccl_call){.func = HCCL_SEND, .who = "hcclSend", .send = send, .count = count, .type = (int)type,
                                       .root = peer, .tag = tag, .is_ours = 1, .comm = comm, .stream = stream});
}

ncclResult_t hcclRecv(void* recv, uint64_t count, ncclDataType_t type, int source, int tag, ncclComm_t comm, cudaStream_t stream,
                      hcclStatus_t* status) {
  return hccl_call(&(struct hccl_call){.func = HCCL_RECV, .who = "hcclRecv", .recv = recv, .count = count, .type = (int)type,
                                       .root = source, .tag = tag, .is_ours = 1, .status = status, .comm = comm, .stream = stream});
}
