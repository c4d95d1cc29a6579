// The table of loops that one instruction set offers. Every table computes the same bits; only the speed differs. Pointers may have
// any alignment; out may be equal to an input, and overlaps none otherwise.
#ifndef HCCL_HOST_KERNELS_H
#define HCCL_HOST_KERNELS_H
#include <stddef.h>
#include <stdint.h>
#include "cmd.h"

enum { HCCL_SLOTS = HCCL_TYPES + 2 }; // a type's place in the tables: the public types, then the 128-bit accumulators

typedef void hccl_combine(void* out, const void* a, const void* b, size_t n); // out = a op b
typedef void hccl_combine_both(void* out, void* out2, const void* a, const void* b, size_t n); // out2 = out
typedef void hccl_sum(void* out, const void* const* src, int k, size_t n); // of k >= 1 sources, from the left
typedef void hccl_sum_round(void* out, const void* const* src, int k, float factor, size_t n); // sum * factor, rounded once
typedef void hccl_convert(void* out, const void* in, size_t n);
typedef void hccl_scale(void* out, const void* in, uint64_t bits, size_t n); // bits: of the factor, in the elements' type

struct hccl_kernels {
  const char* name;
  hccl_combine* op[HCCL_SLOTS][HCCL_REDS]; // none for what is a sum with a step before or behind; within the type, NaN canonical
  hccl_sum* sumk[HCCL_SLOTS];             // to the accumulator's type, in one pass; else NULL
  hccl_combine_both* both[HCCL_SLOTS];    // sums to two destinations in one pass, the second as hand does; else NULL
  hccl_combine_both* streamed[HCCL_SLOTS]; // the same around the caches, out2 inside them or NULL; out at 64 bytes; else NULL
  hccl_convert* widen[HCCL_SLOTS];        // to the type's wide accumulator
  hccl_convert* round[HCCL_SLOTS];        // back from it: floats to nearest even, integers by dropping high bits
  hccl_combine* add[HCCL_SLOTS];          // narrow floats: float32 out = float32 a + narrow b; else NULL
  hccl_combine* sum2[HCCL_SLOTS];         // narrow floats without roundk: narrow out = a + b, rounded once; else NULL
  hccl_sum_round* roundk[HCCL_SLOTS];     // narrow floats: all sources to the result in one pass; else NULL
  hccl_scale* scale[HCCL_SLOTS];          // out = in * factor, rounded to the type
  hccl_scale* divide[HCCL_SLOTS];         // out = in / bits, bits being an integer; by 1: NaN and true made canonical
  void (*hand)(void* out, const void* in, size_t bytes);   // a copy to memory that another processor has read
  void (*stream)(void* out, const void* in, size_t bytes); // a copy around the caches; hccl_host_run fences once behind its last
};

// Portable, AVX2 and AVX-512 tables. A build for another architecture has the first alone.
extern const struct hccl_kernels hccl_kernels_base;
extern const struct hccl_kernels hccl_kernels_avx2;
extern const struct hccl_kernels hccl_kernels_avx512;

enum hccl_level { HCCL_BASE, HCCL_AVX2, HCCL_AVX512 };

// The table in use: the best that the processor has, unless hccl_host_limit set a lower one.
const struct hccl_kernels* hccl_host_kernels(void);
// Sets the highest level to be used and returns the one that is used from now on. For tests: all processes of a job may differ.
int hccl_host_limit(int level);
// Bytes of a result from which on it pays to write it around the caches.
uint64_t hccl_host_stream_from(void);
#endif
