// The loops with what every processor of the architecture has; on x86-64 that is SSE2.
#define LEVEL base
#define NAME "portable"
#define TARGET
#ifdef __SSE2__
#include <emmintrin.h>
#define STREAM_STEP 16
#define STREAM_STORE(o, x) _mm_stream_si128((__m128i*)(o), _mm_loadu_si128((const __m128i*)(x)))
#endif
#include "kernels.inc"
