// The loops with AVX2 and F16C.
#ifdef __x86_64__
#include <immintrin.h>
#define LEVEL avx2
#define NAME "avx2"
#define TARGET __attribute__((target("avx2,f16c")))
#define F16_STEP 8
#define LOAD(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)((p) + i)))
#define QUIET(v) f32_quiet8(v)
#define STORE(p, v) _mm_storeu_si128((__m128i*)((p) + i), _mm256_cvtps_ph(f32_quiet8(v), 0)) // 0: to nearest even
#define F32_GET(p) _mm256_loadu_ps((const float*)((p) + i))
#define F32_PUT(p, v) _mm256_storeu_ps((float*)((p) + i), v)
#define STREAM_STEP 32
#define STREAM_STORE(o, x) _mm256_stream_si256((__m256i*)(o), _mm256_loadu_si256((const __m256i*)(x)))

TARGET static inline __m256 f32_quiet8(__m256 v) {
  __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}
#include "kernels.inc"
#endif
