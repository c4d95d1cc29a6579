// ncclSend and ncclRecv. One message that both sides give in one group to themselves is matched by the core, as all others.
#include "check.h"
#include "coll.h"
#include "group.h"
#include "stream.h"

static ncclResult_t message(enum hccl_func func, const char* who, const void* send, void* recv, size_t count, int type, int peer,
                            ncclComm_t comm, cudaStream_t stream) {
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  size_t bytes;
  const void* buff = func == HCCL_SEND ? send : recv;
  int nranks = atomic_load_explicit(&c->nranks, memory_order_acquire);
  struct hccl_item item = {.kind = HCCL_ITEM_CALL, .func = func, .comm = comm, .id = hccl_number(c, comm), .send = send,
                           .recv = recv, .count = count, .root = peer};
  ncclResult_t e = hccl_take_stream(comm, who, stream, &item.stream);
  if (e == ncclSuccess) e = hccl_take_type(comm, who, type, &item.type);
  if (e == ncclSuccess) e = hccl_check_rank(comm, who, "peer", peer, nranks);
  if (e == ncclSuccess) e = hccl_check_extent(comm, who, buff, count, hccl_type_size(item.type), 1, &bytes);
  if (e == ncclSuccess && count > 0)
    e = hccl_check_pointer(comm, who, func == HCCL_SEND ? "the send buffer" : "the receive buffer", buff);
  return e == ncclSuccess ? hccl_start(&item, NULL) : e;
}

HCCL_API(ncclResult_t, ncclSend,
         (const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return hccl_noted(message(HCCL_SEND, "ncclSend", send, NULL, count, (int)type, peer, comm, stream));
}

HCCL_API(ncclResult_t, ncclRecv,
         (void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return hccl_noted(message(HCCL_RECV, "ncclRecv", NULL, recv, count, (int)type, peer, comm, stream));
}
