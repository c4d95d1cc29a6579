// Runs the kernels under the sanitizers: every type, reduction and shape over counts around vector boundaries, on blocks of memory
// of exactly the bytes that a command names, so that a read or write beside them is found. All instruction sets must give the bits
// of the portable one (which the Go tests compare with a reference), and the caller's floating-point mode must change nothing.
//
//   cc -g -O1 -std=c11 -fsanitize=address,undefined -fno-sanitize-recover=all -I.. check.c ../*.c && ./a.out
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

enum { MAXK = 6 };
static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static unsigned long runs;

static uint32_t seed = 1;
static uint32_t next(void) { return (seed = seed * 1664525u + 1013904223u) >> 8; }

static size_t size_of(int type) { return type < HCCL_TYPES ? sizes[type] : 16; }
static int is_narrow(int t) { return t == HCCL_F16 || t == HCCL_BF16 || t == HCCL_E4M3 || t == HCCL_E5M2; }

static int accumulator(int type, int red) {
  if (is_narrow(type)) return HCCL_F32;
  if (red != HCCL_AVG || type >= HCCL_F16) return type;
  static const int wide[] = {HCCL_I64, HCCL_U64, HCCL_I64, HCCL_U64, HCCL_I128, HCCL_U128};
  return wide[type];
}

// n bytes that start at an odd place and end where their block ends.
struct area { unsigned char *block, *p; };
static struct area area_new(size_t n, size_t offset) {
  unsigned char* block = malloc(n + offset + 1);
  if (!block) abort();
  for (size_t i = 0; i < n; i++) block[offset + i] = (unsigned char)(next() % 5 ? next() : next() % 2 ? 0xff : 0x7f);
  block = realloc(block, n + offset ? n + offset : 1);
  return (struct area){block, block + offset};
}

static void must(int ok, const char* what, const struct hccl_cmd* c) {
  if (ok) return;
  fprintf(stderr, "%s: op %d red %d types %d %d %d, %d sources, %d destinations, %llu elements, scaled %d, stream %d, %s\n", what, c->op,
          c->red, c->src_type, c->acc, c->dst_type, c->nsrc, c->ndst, (unsigned long long)c->n, c->scaled, c->stream,
          hccl_host_kernels()->name);
  exit(1);
}

// Runs c with every instruction set; in_place: the second destination is source 0.
static void compare(struct hccl_cmd c, int in_place) {
  size_t in = c.n * size_of(c.src_type), out = c.n * size_of(c.op == HCCL_COPY ? c.src_type : c.dst_type);
  struct area src[MAXK], init = area_new(c.n * size_of(c.acc), next() % 8), dst[2], first = area_new(out, 0), kept = area_new(in, 0);
  for (int s = 0; s < c.nsrc; s++) {
    src[s] = area_new(in, next() % 8);
    c.src[s] = (uintptr_t)src[s].p;
  }
  memcpy(kept.p, src[0].p, in);
  for (int d = 0; d < 2; d++) dst[d] = area_new(out, next() % 8);
  if (c.init) c.init = (uintptr_t)init.p;
  c.dst[0] = (uintptr_t)dst[0].p;
  c.dst[1] = in_place && in == out ? c.src[0] : (uintptr_t)dst[1].p;
  for (int level = HCCL_BASE; level <= HCCL_AVX512; level++) {
    if (hccl_host_limit(level) != level) continue;
    memcpy(src[0].p, kept.p, in);
    must(hccl_host_run(&c, 1) == 0, "refused", &c);
    if (level == HCCL_BASE) memcpy(first.p, dst[0].p, out);
    must(memcmp(first.p, dst[0].p, out) == 0, "differs from the portable result", &c);
    must(c.ndst < 2 || memcmp(first.p, (void*)c.dst[1], out) == 0, "second destination differs", &c);
    runs++;
  }
  for (int s = 0; s < c.nsrc; s++) free(src[s].block);
  free(dst[0].block); free(dst[1].block); free(init.block); free(first.block); free(kept.block);
}

static void reductions(int type, int red) {
  static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 255, 257, 1023, 1025, 4099};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) for (int n = 1; n <= MAXK; n += n < 3 ? 1 : 3) {
    struct hccl_cmd c = {.op = HCCL_REDUCE, .red = red, .src_type = type, .acc = accumulator(type, red), .dst_type = type, .nsrc = n,
                         .ndst = 1 + next() % 2, .scaled = -1, .stream = next() % 3 == 0, .n = counts[k], .div = n};
    compare(c, next() % 2);
    c.scaled = next() % n;
    c.scale = (uint64_t)next() << 40 ^ (uint64_t)next() << 20 ^ next();
    compare(c, next() % 2);
    c.init = 1;
    compare(c, 0);
    c.dst_type = c.acc; // a partial sum
    compare(c, 0);
    c = (struct hccl_cmd){.op = HCCL_COPY, .src_type = type, .nsrc = 1, .ndst = c.ndst, .scaled = n == 1 ? 0 : -1, .stream = c.stream,
                          .n = c.n, .scale = c.scale};
    compare(c, 1);
  }
}

// Commands of random numbers are refused or run; without elements they touch nothing.
static void nonsense(void) {
  for (int i = 0; i < 200000; i++) {
    struct hccl_cmd c = {.op = next() % 3, .red = next() % 8, .src_type = next() % 36, .acc = next() % 36, .dst_type = next() % 36,
                         .nsrc = next() % 70, .ndst = next() % 4, .scaled = (int)(next() % 5) - 2, .stream = next() % 2, .div = next() % 3};
    hccl_host_run(&c, 1);
  }
}

#ifdef __SSE2__
// Subnormals flushed, rounding upwards and every exception a trap: the result is that of the default mode, and the mode comes back.
static void foreign_mode(void) {
  float a[40], b[40], want[40], got[40];
  for (int i = 0; i < 40; i++) {
    a[i] = i % 3 ? 1e-39f * (float)i : 0.1f * (float)i;
    b[i] = i % 5 ? 1e-40f : 1e30f;
  }
  struct hccl_cmd c = {.op = HCCL_REDUCE, .red = HCCL_PROD, .src_type = HCCL_F32, .acc = HCCL_F32, .dst_type = HCCL_F32, .nsrc = 2,
                       .ndst = 1, .scaled = 0, .n = 40, .scale = 0x40490fdb, .dst = {(uintptr_t)want}, .src = {(uintptr_t)a, (uintptr_t)b}};
  for (int red = HCCL_SUM; red <= HCCL_MIN; red++) {
    c.red = red;
    c.dst[0] = (uintptr_t)want;
    hccl_host_run(&c, 1);
    unsigned before = _mm_getcsr(), foreign = 0x0040 | 0x4000 | 0x8000; // denormals are zero, upwards, flush to zero; no masks
    c.dst[0] = (uintptr_t)got;
    _mm_setcsr(foreign);
    hccl_host_run(&c, 1);
    unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    must(after == foreign, "the floating-point mode is not the caller's any more", &c);
    must(memcmp(got, want, sizeof got) == 0, "the caller's floating-point mode changes the result", &c);
  }
}
#endif

int main(void) {
  for (int type = 0; type < HCCL_TYPES; type++) for (int red = HCCL_SUM; red <= HCCL_PREMULSUM; red++) reductions(type, red);
  nonsense();
#ifdef __SSE2__
  foreign_mode();
#endif
  printf("%lu commands ran\n", runs);
  return 0;
}
