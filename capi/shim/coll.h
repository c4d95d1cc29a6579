// The functions that can be called, by the numbers that the core has for them.
#ifndef HCCL_COLL_H
#define HCCL_COLL_H
#include "api.h"

// The order of coll.Func in internal/coll/coll.go; a test compares the two. hcclFunc_t has the same numbers.
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
  HCCL_BARRIER,
};
#endif
