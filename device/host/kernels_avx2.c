// The loops with AVX2 and F16C.
#ifdef __x86_64__
#include <immintrin.h>
#define LEVEL avx2
#define NAME "avx2"
#define TARGET __attribute__((target("avx2,f16c,prfchw")))
#define VECTOR 8
#define f32_VECTOR __m256
#define f64_VECTOR __m256d
#define f32_QUIET(v) f32_quiet8(v)
#define f64_QUIET(v) f64_quiet4(v)
#define f32_GET(p) _mm256_loadu_ps((const float*)((p) + i))
#define f32_PUT(p, v) _mm256_storeu_ps((float*)((p) + i), v)
#define f32_STREAM(p, v) _mm256_stream_ps((p) + i, v)
#define f64_GET(p) _mm256_loadu_pd((const double*)((p) + i))
#define f64_PUT(p, v) _mm256_storeu_pd((double*)((p) + i), v)
#define f16_GET(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)((p) + i)))
#define f16_PUT(p, v) _mm_storeu_si128((__m128i*)((p) + i), _mm256_cvtps_ph(f32_quiet8(v), 0)) // 0: to nearest even
#define bf16_GET(p) bf16_get8((const __m128i*)((p) + i))
#define bf16_PUT(p, v) _mm_storeu_si128((__m128i*)((p) + i), bf16_round8(v))
#define f16_LOW(p) f16_GET(p)
#define f16_HIGH(p) f16_GET((p) + VECTOR)
#define f16_JOIN(p, low, high) (f16_PUT(p, low), f16_PUT((p) + VECTOR, high))
// Odd elements are the high halves of lanes as they stand, even ones after a shift: none moves to another lane.
#define LANES(p) _mm256_loadu_si256((const __m256i*)((p) + i))
#define bf16_LOW(p) _mm256_castsi256_ps(_mm256_slli_epi32(LANES(p), 16))
#define bf16_HIGH(p) _mm256_castsi256_ps(_mm256_and_si256(LANES(p), _mm256_set1_epi32((int)0xffff0000)))
#define bf16_JOIN(p, low, high) bf16_join16((__m256i*)((p) + i), low, high)
#define AHEAD 1024
#define STREAM_STEP 32
#define STREAM_STORE(o, x) _mm256_stream_si256((__m256i*)(o), _mm256_loadu_si256((const __m256i*)(x)))

TARGET static inline __m256 f32_quiet8(__m256 v) {
  __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}
TARGET static inline __m256d f64_quiet4(__m256d v) {
  __m256d nan = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000));
  return _mm256_blendv_pd(v, nan, _mm256_cmp_pd(v, v, _CMP_UNORD_Q));
}

TARGET static inline __m256 bf16_get8(const __m128i* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}

// As bf16_store: adds half a unit less one, and the last bit that is kept. The high half of each lane is the result.
TARGET static inline __m256i bf16_high8(__m256 v) {
  __m256i u = _mm256_castps_si256(f32_quiet8(v)), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
}
TARGET static inline __m128i bf16_round8(__m256 v) {
  __m256i u = _mm256_srli_epi32(bf16_high8(v), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}

TARGET static inline void bf16_join16(__m256i* p, __m256 even, __m256 odd) {
  _mm256_storeu_si256(p, _mm256_blend_epi16(_mm256_srli_epi32(bf16_high8(even), 16), bf16_high8(odd), 0xaa));
}

#include "kernels.inc"
#endif
