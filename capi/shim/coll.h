// Collective operations with one count: what sets them apart, as data.
#ifndef HCCL_COLL_H
#define HCCL_COLL_H
#include "api.h"

// The order of coll.Func in internal/coll/coll.go; a test compares the two.
enum hccl_func {
  HCCL_ALL_REDUCE,
  HCCL_REDUCE,
  HCCL_BROADCAST,
  HCCL_ALL_GATHER,
  HCCL_REDUCE_SCATTER,
  HCCL_ALL_TO_ALL,
  HCCL_GATHER,
  HCCL_SCATTER,
  HCCL_ALL_GATHER_V,
  HCCL_REDUCE_SCATTER_V,
  HCCL_ALL_TO_ALL_V,
  HCCL_SEND,
  HCCL_RECV,
  HCCL_SPLIT,
};

// A call as the user made it. op and root are ignored where the function has none.
struct hccl_call {
  enum hccl_func func;
  const char* who;
  const void* send;
  void* recv;
  size_t count;
  int type, op, root;
  ncclComm_t comm;
  cudaStream_t stream;
  const ncclCollConfig_t* config;
};

ncclResult_t hccl_collective(const struct hccl_call* call);
#endif
