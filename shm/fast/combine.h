// The arithmetic that is worth having in line: copies and sums of a few bytes. Everything else is the kernels'.
#ifndef HCCL_FAST_COMBINE_H
#define HCCL_FAST_COMBINE_H
#include <stdint.h>
#include <string.h>
#include "../../device/host/cmd.h"
#include "../../device/host/mode.h"
#include "../../device/host/narrow.h"

// One scalar of 4 or 8 bytes is the commonest message; a call of memcpy would cost a tenth of it.
static inline void copy_small(void* to, const void* from, uint64_t bytes) {
  if (bytes == 8) memcpy(to, from, 8);
  else if (bytes == 4) memcpy(to, from, 4);
  else if (to != from) memcpy(to, from, bytes);
}

// device.Accumulator.
static inline uint8_t accumulator(uint32_t type, uint32_t red) {
  static const uint8_t narrow[HCCL_TYPES] = {[HCCL_F16] = 1, [HCCL_BF16] = 1, [HCCL_E4M3] = 1, [HCCL_E5M2] = 1};
  if (narrow[type]) return HCCL_F32;
  if (red != HCCL_AVG || type == HCCL_F32 || type == HCCL_F64) return type;
  switch (type) {
    case HCCL_I8: case HCCL_I16: case HCCL_I32: return HCCL_I64;
    case HCCL_U8: case HCCL_U16: case HCCL_U32: return HCCL_U64;
    case HCCL_I64: return HCCL_I128;
    default: return HCCL_U128;
  }
}

// Loads and stores through memcpy: a user's buffer may have any alignment.
#define SUM_SMALL(T, FINISH)                                          \
  for (uint64_t i = 0; i < count; i++) {                              \
    T acc, x;                                                         \
    memcpy(&acc, first + i * sizeof(T), sizeof(T));                   \
    for (uint32_t r = 1; r < n; r++) {                                \
      memcpy(&x, first + r * stride + i * sizeof(T), sizeof(T));      \
      acc += x;                                                       \
    }                                                                 \
    acc = FINISH(acc);                                                \
    memcpy((char*)to + i * sizeof(T), &acc, sizeof(T));               \
  }

static inline void sum_f32(void* to, const char* first, size_t stride, uint32_t n, uint64_t count) {
  uint32_t mode = hccl_mode_enter();
  SUM_SMALL(float, f32_quiet) // NaN as the kernels write it
  hccl_mode_leave(mode);
}

static inline void sum_f64(void* to, const char* first, size_t stride, uint32_t n, uint64_t count) {
  uint32_t mode = hccl_mode_enter();
  SUM_SMALL(double, f64_quiet)
  hccl_mode_leave(mode);
}

// Integers wrap, as unsigned ones.
static inline void sum_u32(void* to, const char* first, size_t stride, uint32_t n, uint64_t count) { SUM_SMALL(uint32_t, ) }
static inline void sum_u64(void* to, const char* first, size_t stride, uint32_t n, uint64_t count) { SUM_SMALL(uint64_t, ) }

// Sums what lies in the lines of n mails, stride apart, in rank order. 0: not of this kind.
static inline int sum_small(void* to, const char* first, size_t stride, uint32_t n, uint32_t type, uint32_t red, uint64_t count) {
  if (red != HCCL_SUM && red != HCCL_PREMULSUM) return 0;
  switch (type) {
    case HCCL_F32: sum_f32(to, first, stride, n, count); return 1;
    case HCCL_F64: sum_f64(to, first, stride, n, count); return 1;
    case HCCL_I32: case HCCL_U32: sum_u32(to, first, stride, n, count); return 1;
    case HCCL_I64: case HCCL_U64: sum_u64(to, first, stride, n, count); return 1;
    default: return 0;
  }
}
#undef SUM_SMALL
#endif
