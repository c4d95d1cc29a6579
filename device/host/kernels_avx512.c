// The loops with AVX-512: F, BW, DQ and VL, the set that all server processors with 512-bit vectors have.
#ifdef __x86_64__
#include <immintrin.h>
#define LEVEL avx512
#define NAME "avx512"
#ifdef __clang__
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")))
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,prefer-vector-width=512")))
#endif
#define F16_STEP 16
#define LOAD(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)((p) + i)))
#define QUIET(v) f32_quiet16(v)
#define STORE(p, v) _mm256_storeu_si256((__m256i*)((p) + i), _mm512_cvtps_ph(f32_quiet16(v), 0)) // 0: to nearest even
#define F32_GET(p) _mm512_loadu_ps((p) + i)
#define F32_PUT(p, v) _mm512_storeu_ps((p) + i, v)
#define STREAM_STEP 64
#define STREAM_STORE(o, x) _mm512_stream_si512((__m512i*)(o), _mm512_loadu_si512(x))

TARGET static inline __m512 f32_quiet16(__m512 v) {
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}
#include "kernels.inc"
#endif
