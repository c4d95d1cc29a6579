// The shape of a command: its element sizes and the loops that it needs, looked up once per command.
#ifndef HCCL_HOST_SHAPE_H
#define HCCL_HOST_SHAPE_H
#include <stddef.h>
#include "kernels.h"

struct shape {
  size_t src_size, acc_size, dst_size; // bytes of an element
  hccl_scale* scale;     // NULL: no source is scaled
  hccl_convert* widen;   // NULL: sources have the accumulator's type
  hccl_combine* add;     // widen and op in one loop, or NULL
  hccl_combine* op;
  hccl_sum* sumk;        // all sources to the accumulator in one pass; NULL: one after the other
  hccl_sum_round* roundk; // all sources to the result in one pass, by factor; or NULL
  float factor;
  hccl_scale* divide;    // NULL: the sum is not divided
  uint64_t div;
  hccl_convert* round;   // NULL: the result has the accumulator's type
  hccl_combine* two;     // all of it in one loop: two sources of the destination's type; or NULL
  hccl_combine_both* both; // two, to two destinations; or NULL
  hccl_combine_both* streamed; // two, the first destination around the caches; or NULL
};

// Fills s. 0 if c makes no sense: unknown numbers, a count of addresses out of range, types that do not go together.
int shape_of(const struct hccl_cmd* c, const struct hccl_kernels* k, struct shape* s);
#endif
