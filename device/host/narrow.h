// The narrow floats: to and from float32, without branches, so that compilers turn loops over these into vector code. Rounding is
// to nearest even; every NaN comes out as the one positive quiet NaN of its type. docs/numerics.md states the rules.
//
//            exponent bits, stored significand bits, bias, first pattern above the finite numbers
//   fp16     5  10  15   0x7c00 infinity
//   bf16     8   7 127   0x7f80 infinity
//   e4m3     4   3   7   0x7f   NaN (there is no infinity: 0x78-0x7e are numbers, up to 448)
//   e5m2     5   2  15   0x7c   infinity
#ifndef HCCL_HOST_NARROW_H
#define HCCL_HOST_NARROW_H
#include <stdint.h>

static inline uint32_t f32_bits(float f) { uint32_t u; __builtin_memcpy(&u, &f, 4); return u; }
static inline float f32_from(uint32_t u) { float f; __builtin_memcpy(&f, &u, 4); return f; }
static inline uint64_t f64_bits(double f) { uint64_t u; __builtin_memcpy(&u, &f, 8); return u; }
static inline double f64_from(uint64_t u) { double f; __builtin_memcpy(&f, &u, 8); return f; }

#define F32_NAN 0x7fc00000u
#define F64_NAN 0x7ff8000000000000u

// yes where the condition holds, else no: by masks, since compilers make branches of some conditional expressions and then give
// up on vectors.
static inline uint32_t pick32(int condition, uint32_t yes, uint32_t no) {
  uint32_t mask = -(uint32_t)condition;
  return (yes & mask) | (no & ~mask);
}
static inline uint64_t pick64(int condition, uint64_t yes, uint64_t no) {
  uint64_t mask = -(uint64_t)condition;
  return (yes & mask) | (no & ~mask);
}

static inline float f32_quiet(float f) { return f32_from(f == f ? f32_bits(f) : F32_NAN); }
static inline double f64_quiet(double f) { return f64_from(f == f ? f64_bits(f) : F64_NAN); }

// Decodes a pattern of 1 sign bit, then an exponent with the given bias, then man bits. top is the first pattern above the finite
// numbers and top32 what is added to the aligned bits to make its exponent float32's largest.
static inline float narrow_decode(uint32_t b, int width, int man, uint32_t bias, uint32_t top, uint32_t top32) {
  uint32_t mag = b & ((1u << (width - 1)) - 1), sign = (b >> (width - 1)) << 31, aligned = mag << (23 - man);
  uint32_t normal = aligned + ((127 - bias) << 23), least = (128 - bias) << 23; // least: the smallest normal number
  uint32_t sub = f32_bits(f32_from(aligned + least) - f32_from(least)); // exact; no multiplication of subnormals, which is slow
  uint32_t r = pick32(mag < 1u << man, sub, pick32(mag < top, normal, aligned + top32));
  return f32_from(r | sign);
}

static inline uint32_t narrow_encode(float f, int width, int man, uint32_t bias, uint32_t top) {
  uint32_t u = f32_bits(f), mag = u & 0x7fffffffu, drop = 23 - man;
  uint32_t normal = (mag - ((127 - bias) << 23) + (1u << (drop - 1)) - 1 + (mag >> drop & 1)) >> drop; // ties to even
  uint32_t ulp = (127 + 24 - bias - man) << 23; // the number whose last place is the type's smallest subnormal: adding it rounds
  uint32_t sub = f32_bits(f32_from(mag) + f32_from(ulp)) - ulp;
  uint32_t r = pick32(mag < (128 - bias) << 23, sub, pick32(normal > top, top, normal));
  return r | (u >> 31) << (width - 1);
}

static inline float f32_load(float f) { return f; }
static inline double f64_load(double f) { return f; }
static inline float f16_load(uint16_t b) { return narrow_decode(b, 16, 10, 15, 0x7c00, 224u << 23); }
static inline float e5m2_load(uint8_t b) { return narrow_decode(b, 8, 2, 15, 0x7c, 224u << 23); }
static inline float e4m3_load(uint8_t b) { return narrow_decode(b, 8, 3, 7, 0x7f, 0x77d00000u); } // 0x7f becomes 0x7fc00000
static inline float bf16_load(uint16_t b) { return f32_from((uint32_t)b << 16); }

static inline uint16_t f16_store(float f) { return (uint16_t)pick32(f == f, narrow_encode(f, 16, 10, 15, 0x7c00), 0x7e00); }
static inline uint8_t e5m2_store(float f) { return (uint8_t)pick32(f == f, narrow_encode(f, 8, 2, 15, 0x7c), 0x7e); }
static inline uint8_t e4m3_store(float f) {
  uint32_t r = narrow_encode(f, 8, 3, 7, 0x7f);
  return (uint8_t)pick32(((r & 0x7f) != 0x7f) & (f == f), r, 0x7f);
}
static inline uint16_t bf16_store(float f) {
  uint32_t u = f32_bits(f);
  return (uint16_t)(f == f ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fc0);
}
#endif
