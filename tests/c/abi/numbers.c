/* Prints the shim's functions in the order of their numbers, under the names that package coll gives them. */
#include "../../../capi/shim/coll.h"
#include <stdio.h>

static const char* const names[] = {
  [HCCL_ALL_REDUCE] = "all-reduce",         [HCCL_REDUCE] = "reduce",
  [HCCL_BROADCAST] = "broadcast",           [HCCL_ALL_GATHER] = "all-gather",
  [HCCL_REDUCE_SCATTER] = "reduce-scatter", [HCCL_ALL_TO_ALL] = "all-to-all",
  [HCCL_GATHER] = "gather",                 [HCCL_SCATTER] = "scatter",
  [HCCL_ALL_GATHER_V] = "all-gather-v",     [HCCL_REDUCE_SCATTER_V] = "reduce-scatter-v",
  [HCCL_ALL_TO_ALL_V] = "all-to-all-v",     [HCCL_SEND] = "send",
  [HCCL_RECV] = "recv",                     [HCCL_SPLIT] = "split",
  [HCCL_BARRIER] = "barrier",
};

int main(void) {
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) puts(names[k] != NULL ? names[k] : "?");
  return 0;
}
