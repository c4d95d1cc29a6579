// Messages. One that both sides give in one group to themselves is matched by the core, as all others.
#include "call.h"
#include "check.h"
#include "stream.h"

ncclResult_t hccl_fill_message(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item) {
  size_t bytes;
  int sends = a->func == HCCL_SEND, nranks = atomic_load_explicit(&c->nranks, memory_order_acquire);
  const void* buff = sends ? a->send : a->recv;
  item->root = a->root;
  item->tag = a->tag;
  ncclResult_t e = hccl_take_stream(a->comm, a->who, a->stream, &item->stream);
  if (e == ncclSuccess) e = hccl_take_type(a->comm, a->who, a->type, &item->type);
  if (e == ncclSuccess) e = hccl_check_rank(a->comm, a->who, "peer", a->root, nranks);
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
