// Which table of loops is in use, and the floating-point mode that they run in.
#include "kernels.h"
#include "mode.h"

static const struct hccl_kernels* best(int level) {
#ifdef __x86_64__
  __builtin_cpu_init();
  int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
  if (level >= HCCL_AVX512 && avx2 && avx512) return &hccl_kernels_avx512;
  if (level >= HCCL_AVX2 && avx2) return &hccl_kernels_avx2;
#endif
  (void)level;
  return &hccl_kernels_base;
}

// NULL until the first use. Threads that race to it store the same pointer to constant data: relaxed order is enough.
static const struct hccl_kernels* chosen;

const struct hccl_kernels* hccl_host_kernels(void) {
  const struct hccl_kernels* k = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (k == NULL) {
    k = best(HCCL_AVX512);
    __atomic_store_n(&chosen, k, __ATOMIC_RELAXED);
  }
  return k;
}

int hccl_host_limit(int level) {
  const struct hccl_kernels* k = best(level);
  __atomic_store_n(&chosen, k, __ATOMIC_RELAXED);
  return k == &hccl_kernels_base ? HCCL_BASE : level > HCCL_AVX512 ? HCCL_AVX512 : level;
}

// Two ranks that all-reduce one buffer over and over: a result that is written into the caches costs the reading of lines that are
// about to be overwritten, unless they are still there. On a Xeon (2 MiB of second-level cache for each processor, a far third
// level) they are not from 1 MiB on; on an EPYC (512 KiB, and a third level of 32 MiB close by) they are up to 2 MiB, where writing around
// costs 300 us instead of 180, and 4 MiB takes the same time either way.
uint64_t hccl_host_stream_from(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_is("amd")) return 4 << 20;
#endif
  return 1 << 20;
}
