// The floating-point mode belongs to the host program, per thread: it may flush subnormals (fast-math start-up code does), round
// another way or trap. Ranks would then disagree, so arithmetic runs in the default mode and the caller gets its own back.
#ifndef HCCL_HOST_MODE_H
#define HCCL_HOST_MODE_H
#include <stdint.h>

#ifdef __SSE2__
#include <xmmintrin.h>
enum { HCCL_MODE_DEFAULT = 0x1f80, HCCL_MODE_FLAGS = 0x3f }; // all exceptions masked, nearest even; the sticky flags
static inline uint32_t hccl_mode_enter(void) {
  uint32_t mode = _mm_getcsr();
  if ((mode & ~HCCL_MODE_FLAGS) != HCCL_MODE_DEFAULT) _mm_setcsr(HCCL_MODE_DEFAULT);
  return mode;
}
static inline void hccl_mode_leave(uint32_t mode) {
  if ((mode & ~HCCL_MODE_FLAGS) != HCCL_MODE_DEFAULT) _mm_setcsr(mode);
}
#else // 64-bit Arm: FPCR, whose default is 0
#ifdef __aarch64__
static inline uint32_t hccl_mode_enter(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  if (mode) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
  return (uint32_t)mode;
}
static inline void hccl_mode_leave(uint32_t mode) {
  if (mode) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
}
#else
static inline uint32_t hccl_mode_enter(void) { return 0; }
static inline void hccl_mode_leave(uint32_t mode) { (void)mode; }
#endif
#endif
#endif
