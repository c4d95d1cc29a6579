// The loops with AVX-512: F, BW, DQ and VL, the set that all server processors with 512-bit vectors have.
#ifdef __x86_64__
#include <immintrin.h>
#define LEVEL avx512
#define NAME "avx512"
#ifdef __clang__
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,prfchw")))
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,prfchw,prefer-vector-width=512")))
#endif
#define VECTOR 16
#define f32_VECTOR __m512
#define f64_VECTOR __m512d
#define f32_QUIET(v) f32_quiet16(v)
#define f64_QUIET(v) f64_quiet8(v)
#define f32_GET(p) _mm512_loadu_ps((p) + i)
#define f32_PUT(p, v) _mm512_storeu_ps((p) + i, v)
#define f32_STREAM(p, v) _mm512_stream_ps((p) + i, v)
#define f64_GET(p) _mm512_loadu_pd((p) + i)
#define f64_PUT(p, v) _mm512_storeu_pd((p) + i, v)
#define f16_GET(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)((p) + i)))
#define f16_PUT(p, v) _mm256_storeu_si256((__m256i*)((p) + i), _mm512_cvtps_ph(f32_quiet16(v), 0)) // 0: to nearest even
#define bf16_GET(p) bf16_get16((const __m256i*)((p) + i))
#define bf16_PUT(p, v) _mm256_storeu_si256((__m256i*)((p) + i), bf16_round16(v))
#define f16_LOW(p) f16_GET(p)
#define f16_HIGH(p) f16_GET((p) + VECTOR)
#define f16_JOIN(p, low, high) (f16_PUT(p, low), f16_PUT((p) + VECTOR, high))
// Odd elements are the high halves of lanes as they stand, even ones after a shift: none moves to another lane.
#define bf16_LOW(p) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512((p) + i), 16))
#define bf16_HIGH(p) _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512((p) + i), _mm512_set1_epi32((int)0xffff0000)))
#define bf16_JOIN(p, low, high) bf16_join32((p) + i, low, high)
#define AHEAD 1024
#define STREAM_STEP 64
#define STREAM_STORE(o, x) _mm512_stream_si512((__m512i*)(o), _mm512_loadu_si512(x))

TARGET static inline __m512 f32_quiet16(__m512 v) {
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}
TARGET static inline __m512d f64_quiet8(__m512d v) {
  __m512d nan = _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff8000000000000));
  return _mm512_mask_mov_pd(v, _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q), nan);
}

TARGET static inline __m512 bf16_get16(const __m256i* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

// As bf16_store; the high half of each lane is the result. The instruction of AVX512_BF16 flushes subnormals, so it is of no use.
TARGET static inline __m512i bf16_high16(__m512 v) {
  __m512i u = _mm512_castps_si512(f32_quiet16(v)), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
}
TARGET static inline __m256i bf16_round16(__m512 v) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_high16(v), 16)); }

TARGET static inline void bf16_join32(void* p, __m512 even, __m512 odd) {
  _mm512_storeu_si512(p, _mm512_mask_mov_epi16(_mm512_srli_epi32(bf16_high16(even), 16), 0xaaaaaaaa, bf16_high16(odd)));
}

#include "kernels.inc"
#endif
