// The collectives with one count: what sets them apart, as data.
#include "call.h"
#include "check.h"
#include "coll_config.h"
#include "error.h"
#include "redop.h"
#include "stream.h"

enum user { ALL, ROOT };                       // the ranks that use a buffer
enum place { SAME, OWN_OF_RECV, OWN_OF_SEND, NOWHERE }; // in place: equal, the own block in the larger buffer, not possible

struct shape {
  unsigned char reduces, rooted, sender, receiver;
  unsigned char send_blocks, recv_blocks; // whether the buffer holds a block for each rank
  unsigned char place;
};

static const struct shape shapes[] = {
  [HCCL_ALL_REDUCE] = {1, 0, ALL, ALL, 0, 0, SAME},
  [HCCL_REDUCE] = {1, 1, ALL, ROOT, 0, 0, SAME},
  [HCCL_BROADCAST] = {0, 1, ROOT, ALL, 0, 0, SAME},
  [HCCL_ALL_GATHER] = {0, 0, ALL, ALL, 0, 1, OWN_OF_RECV},
  [HCCL_REDUCE_SCATTER] = {1, 0, ALL, ALL, 1, 0, OWN_OF_SEND},
  [HCCL_ALL_TO_ALL] = {0, 0, ALL, ALL, 1, 1, NOWHERE},
  [HCCL_GATHER] = {0, 1, ALL, ROOT, 0, 1, OWN_OF_RECV},
  [HCCL_SCATTER] = {0, 1, ROOT, ALL, 1, 0, OWN_OF_SEND},
};

// check_place judges two buffers that this rank both uses.
static ncclResult_t check_place(const struct hccl_call* a, const struct shape* s, int rank, size_t block, size_t sent,
                                size_t received) {
  const char *send = a->send, *recv = a->recv;
  const char* send_at = s->place == SAME ? recv : s->place == OWN_OF_RECV ? recv + (size_t)rank * block : NULL;
  const char* recv_at = s->place == OWN_OF_SEND ? send + (size_t)rank * block : NULL;
  if (s->place == NOWHERE && sent == block) send_at = recv; // a communicator of one
  return hccl_check_overlap(a->comm, a->who, send, sent, recv, received, send_at, recv_at);
}

static ncclResult_t check_buffers(const struct hccl_call* a, const struct shape* s, size_t size, int rank, int nranks) {
  size_t n = nranks > 0 ? (size_t)nranks : 1, sent, received;
  ncclResult_t e = hccl_check_extent(a->comm, a->who, a->send, a->count, size, s->send_blocks ? n : 1, &sent);
  if (e == ncclSuccess) e = hccl_check_extent(a->comm, a->who, a->recv, a->count, size, s->recv_blocks ? n : 1, &received);
  if (e != ncclSuccess || a->count == 0 || nranks == 0) return e;
  int sends = s->sender == ALL || rank == a->root, receives = s->receiver == ALL || rank == a->root;
  if (sends) e = hccl_check_pointer(a->comm, a->who, "the send buffer", a->send);
  if (e == ncclSuccess && receives) e = hccl_check_pointer(a->comm, a->who, "the receive buffer", a->recv);
  return e == ncclSuccess && sends && receives ? check_place(a, s, rank, a->count * size, sent, received) : e;
}

ncclResult_t hccl_fill_collective(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item, struct hccl_extra* extra) {
  const struct shape* s = &shapes[a->func];
  int nranks = atomic_load_explicit(&c->nranks, memory_order_acquire), rank = atomic_load_explicit(&c->rank, memory_order_relaxed);
  ncclResult_t e = hccl_take_stream(a->comm, a->who, a->stream, &item->stream);
  if (e == ncclSuccess) e = hccl_take_type(a->comm, a->who, a->type, &item->type);
  if (e == ncclSuccess && s->reduces) e = hccl_redop_use(c, a->comm, a->who, a->op, item, &extra->factor);
  if (e == ncclSuccess && s->rooted) e = hccl_check_rank(a->comm, a->who, "root", a->root, nranks);
  if (e == ncclSuccess) e = check_buffers(a, s, hccl_type_size(item->type), rank, nranks);
  if (e == ncclSuccess && a->config != NULL) e = hccl_coll_config(a->config, a->comm, a->who, item);
  item->root = s->rooted ? a->root : 0;
  return e;
}

#define CALL(function, name, ...) hccl_call(&(struct hccl_call){.func = function, .who = name, __VA_ARGS__})
#define ARGS .send = send, .recv = recv, .count = count, .type = (int)type, .comm = comm, .stream = stream

HCCL_API(ncclResult_t, ncclAllReduce,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_ALL_REDUCE, "ncclAllReduce", ARGS, .op = (int)op);
}
HCCL_API(ncclResult_t, ncclReduce,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
          cudaStream_t stream)) {
  return CALL(HCCL_REDUCE, "ncclReduce", ARGS, .op = (int)op, .root = root);
}
HCCL_API(ncclResult_t, ncclBroadcast,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_BROADCAST, "ncclBroadcast", ARGS, .root = root);
}
HCCL_API(ncclResult_t, ncclBcast,
         (void* buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)) {
  const void* send = buff;
  void* recv = buff;
  return CALL(HCCL_BROADCAST, "ncclBcast", ARGS, .root = root);
}
HCCL_API(ncclResult_t, ncclAllGather,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_ALL_GATHER, "ncclAllGather", ARGS);
}
HCCL_API(ncclResult_t, ncclReduceScatter,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_REDUCE_SCATTER, "ncclReduceScatter", ARGS, .op = (int)op);
}
HCCL_API(ncclResult_t, ncclAlltoAll,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_ALL_TO_ALL, "ncclAlltoAll", ARGS);
}
HCCL_API(ncclResult_t, ncclGather,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_GATHER, "ncclGather", ARGS, .root = root);
}
HCCL_API(ncclResult_t, ncclScatter,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)) {
  return CALL(HCCL_SCATTER, "ncclScatter", ARGS, .root = root);
}

HCCL_API(ncclResult_t, ncclAllReduceConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_ALL_REDUCE, "ncclAllReduceConfig", ARGS, .op = (int)op, .config = config);
}
HCCL_API(ncclResult_t, ncclReduceConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
          cudaStream_t stream, const ncclCollConfig_t* config)) {
  return CALL(HCCL_REDUCE, "ncclReduceConfig", ARGS, .op = (int)op, .root = root, .config = config);
}
HCCL_API(ncclResult_t, ncclBroadcastConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_BROADCAST, "ncclBroadcastConfig", ARGS, .root = root, .config = config);
}
HCCL_API(ncclResult_t, ncclAllGatherConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_ALL_GATHER, "ncclAllGatherConfig", ARGS, .config = config);
}
HCCL_API(ncclResult_t, ncclReduceScatterConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_REDUCE_SCATTER, "ncclReduceScatterConfig", ARGS, .op = (int)op, .config = config);
}
HCCL_API(ncclResult_t, ncclAlltoAllConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_ALL_TO_ALL, "ncclAlltoAllConfig", ARGS, .config = config);
}
HCCL_API(ncclResult_t, ncclGatherConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_GATHER, "ncclGatherConfig", ARGS, .root = root, .config = config);
}
HCCL_API(ncclResult_t, ncclScatterConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config)) {
  return CALL(HCCL_SCATTER, "ncclScatterConfig", ARGS, .root = root, .config = config);
}
