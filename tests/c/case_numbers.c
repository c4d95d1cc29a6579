/* Numbers: the same bits on all ranks, at any size and offset where that is promised; small terms, means, scaled sums. */
#include "case_ops.h"

#include <math.h>

static uint64_t hash_of(const void* p, size_t n) {
  uint64_t h = 1469598103934665603u;
  for (const uint8_t *b = (const uint8_t*)p, *end = b + n; b < end; b++) h = (h ^ *b) * 1099511628211u;
  return h;
}
static uint16_t to_bf16(float f) { /* to nearest even; no NaN comes here */
  uint32_t u;
  memcpy(&u, &f, 4);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static float from_bf16(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static float normal(unsigned* seed) { /* near enough: the sum of twelve */
  float x = -6;
  for (int k = 0; k < 12; k++) x += (float)rand_r(seed) / (float)RAND_MAX;
  return x;
}

/* ---- all ranks hold the same bits ---- */

/* Random bits of a type that are finite numbers of moderate size. */
static void random_of(ncclDataType_t t, char* p, size_t n, unsigned* seed) {
  for (size_t i = 0; i < n; i++) {
    float f = normal(seed);
    double d = f;
    uint32_t u;
    memcpy(&u, &f, 4);
    switch (t) {
      case ncclFloat32: memcpy(p + 4 * i, &f, 4); break;
      case ncclFloat64: memcpy(p + 8 * i, &d, 8); break;
      case ncclBfloat16: { uint16_t h = to_bf16(f); memcpy(p + 2 * i, &h, 2); break; }
      case ncclFloat16: { /* the exponent moved from bias 127 to 15; tiny numbers are left out */
        uint16_t h = (uint16_t)((u >> 16 & 0x8000) | (fabsf(f) < 1e-3f ? 0 : (((u >> 23 & 255) - 112) << 10 | (u >> 13 & 1023))));
        memcpy(p + 2 * i, &h, 2);
        break;
      }
      default: p[i] = (char)(rand_r(seed) & (t == ncclFloat8e4m3 ? 0xb7 : 0xbb)); /* exponents that are not the highest */
    }
  }
}

static void same_body(void) {
  static const struct { ncclDataType_t type; size_t size; } types[] = {
      {ncclFloat16, 2}, {ncclBfloat16, 2}, {ncclFloat32, 4}, {ncclFloat64, 8}, {ncclFloat8e4m3, 1}, {ncclFloat8e5m2, 1}};
  static const size_t counts[] = {1, 7, 1000, 4099, 70001, 600000};
  ncclComm_t c = comm_new();
  for (int round = 0; round < times(1, 20); round++) {
    for (size_t k = 0; k < 6 * 6; k++) {
      size_t n = counts[k / 6], z = types[k % 6].size;
      unsigned seed = (unsigned)(me * 1000 + round * 40 + (int)k);
      char *s = (char*)malloc(n * z), *d = (char*)malloc(n * z);
      uint64_t all[RANKS], mine;
      NOTE("round %d, type %d, count %zu", round, (int)types[k % 6].type, n);
      random_of(types[k % 6].type, s, n, &seed);
      MUST(c, ncclAllReduce(s, d, n, types[k % 6].type, ncclSum, c, NULL));
      mine = hash_of(d, n * z);
      MUST(c, ncclAllGather(&mine, all, 1, ncclUint64, c, NULL));
      for (int r = 0; r < ranks; r++) CHECK(all[r] == mine, "other bits than rank %d", r);
      free(s), free(d);
    }
  }
  MUST(c, ncclCommDestroy(c));
}

static int same_bits(void) {
  static const char* const algos[] = {"", "ring", "direct"};
  int faults = 0;
  for (int k = 0; k < 3; k++) {
    if (k > 0) setenv("NCCL_ALGO", algos[k], 1);
    faults += job_run(7, 60, same_body);
  }
  return faults;
}

/* ---- one tensor alone and within others ---- */

static void embedded_body(void) {
  enum { N = 12345 };
  static const size_t sizes[] = {20 << 10, 1 << 20, 8 << 20}, offsets[] = {0, 1, 99999};
  setenv("HCCL_DETERMINISTIC", "1", 1);
  ncclComm_t c = comm_new();
  for (int wide = 0; wide < 2; wide++) {
    size_t z = wide ? 4 : 2;
    unsigned seed = (unsigned)(17 + me);
    char *x = (char*)malloc(N * z), *want = (char*)malloc(N * z);
    random_of(wide ? ncclFloat32 : ncclBfloat16, x, N, &seed);
    MUST(c, ncclAllReduce(x, want, N, wide ? ncclFloat32 : ncclBfloat16, ncclSum, c, NULL));
    for (int k = 0; k < 9; k++) {
      size_t n = sizes[k / 3], at = offsets[k % 3];
      if (at + N > n) continue;
      char* p = (char*)calloc(n, z);
      NOTE("at %zu of %zu", at, n);
      memcpy(p + at * z, x, N * z);
      MUST(c, ncclAllReduce(p, p, n, wide ? ncclFloat32 : ncclBfloat16, ncclSum, c, NULL));
      CHECK(memcmp(p + at * z, want, N * z) == 0, "other bits than alone");
      free(p);
    }
    free(x), free(want);
  }
  MUST(c, ncclCommDestroy(c));
}

/* ---- many small terms ---- */

static void small_body(void) {
  enum { N = 3000 };
  ncclComm_t c = comm_new();
  uint16_t s[N], d[N];
  for (int i = 0; i < N; i++) s[i] = to_bf16(i % 2 ? (me == 0 ? 256.0f : 0.5f) : (me == 0 ? 1.0f : 0x1p-9f));
  NOTE("256 and 31 times 0.5; 1 and 31 times 2^-9");
  MUST(c, ncclAllReduce(s, d, N, ncclBfloat16, ncclSum, c, NULL));
  const float even = from_bf16(to_bf16(1 + 31 * 0x1p-9f));
  for (int i = 0; i < N; i++) {
    float want = i % 2 ? 272 : even;
    if (from_bf16(d[i]) != want) {
      FAULT("element %d is %g, not %g", i, (double)from_bf16(d[i]), (double)want);
      break;
    }
  }
  double sum[N] = {0}, size[N] = {0};
  for (int r = 0; r < ranks; r++) {
    unsigned seed = (unsigned)r + 5;
    for (int i = 0; i < N; i++) {
      uint16_t h = to_bf16(normal(&seed));
      sum[i] += (double)from_bf16(h), size[i] += fabs((double)from_bf16(h));
      if (r == me) s[i] = h;
    }
  }
  NOTE("random terms");
  MUST(c, ncclAllReduce(s, d, N, ncclBfloat16, ncclSum, c, NULL));
  for (int i = 0; i < N; i++) { /* float32 inside a host, rounded once: half a unit of the sum, and what 31 additions lose */
    double off = fabs((double)from_bf16(d[i]) - sum[i]), most = fabs(sum[i]) * 0x1p-8 + size[i] * 32 * 0x1p-24;
    if (off > most) {
      FAULT("element %d is off by %g, at most %g may be", i, off, most);
      break;
    }
  }
  MUST(c, ncclCommDestroy(c));
}

/* ---- means and scaled sums ---- */

static void means(ncclComm_t c) {
  const int8_t a[3] = {10, 20, 33}, w[3] = {120, 100, 0};
  const uint64_t u[3] = {(1ull << 63) + 1, (1ull << 63) + 2, (1ull << 63) + 3};
  const int32_t neg[3] = {-1, -2, -5};
  int8_t r8 = 0;
  uint64_t r64 = 0;
  int32_t r32 = 0;
  NOTE("means of integers");
  MUST(c, ncclAllReduce(&a[me], &r8, 1, ncclInt8, ncclAvg, c, NULL));
  CHECK(r8 == 21, "the mean of 10, 20, 33 is %d", r8);
  MUST(c, ncclAllReduce(&u[me], &r64, 1, ncclUint64, ncclAvg, c, NULL));
  CHECK(r64 == (1ull << 63) + 2, "the mean near 2^63 is %#llx", (unsigned long long)r64);
  MUST(c, ncclAllReduce(&neg[me], &r32, 1, ncclInt32, ncclAvg, c, NULL));
  CHECK(r32 == -2, "the mean of -1, -2, -5 is %d: towards zero it is -2", r32);
  MUST(c, ncclAllReduce(&w[me], &r8, 1, ncclInt8, ncclSum, c, NULL));
  CHECK(r8 == -36, "120 + 100 in int8 is %d", r8);
  const uint8_t e4[3] = {0x38, 0x40, 0x44}, e5[3] = {0x3c, 0x40, 0x42}; /* 1, 2, 3 */
  const uint16_t bf[3] = {0x3f80, 0x4000, 0x4040};
  uint8_t f8 = 0;
  uint16_t f16 = 0;
  NOTE("means of narrow floats");
  MUST(c, ncclAllReduce(&e4[me], &f8, 1, ncclFloat8e4m3, ncclAvg, c, NULL));
  CHECK(f8 == 0x40, "the mean of 1, 2, 3 in float8e4m3 is %#x", f8);
  MUST(c, ncclAllReduce(&e5[me], &f8, 1, ncclFloat8e5m2, ncclAvg, c, NULL));
  CHECK(f8 == 0x40, "the mean of 1, 2, 3 in float8e5m2 is %#x", f8);
  MUST(c, ncclAllReduce(&bf[me], &f16, 1, ncclBfloat16, ncclAvg, c, NULL));
  CHECK(f16 == 0x4000, "the mean of 1, 2, 3 in bfloat16 is %#x", f16);
}

static void scaled(ncclComm_t c) { /* half of 2 on each of 3 ranks is 3, in every type of floats */
  static const struct { ncclDataType_t type; int size; uint64_t half, two, three; } t[] = {
      {ncclFloat8e4m3, 1, 0x30, 0x40, 0x44}, {ncclFloat8e5m2, 1, 0x38, 0x40, 0x42}, {ncclFloat16, 2, 0x3800, 0x4000, 0x4200},
      {ncclBfloat16, 2, 0x3f00, 0x4000, 0x4040}, {ncclFloat32, 4, 0x3f000000, 0x40000000, 0x40400000},
      {ncclFloat64, 8, 0x3fe0000000000000, 0x4000000000000000, 0x4008000000000000}};
  for (int k = 0; k < 6; k++) {
    uint64_t half = t[k].half, s = t[k].two, d = 0;
    ncclRedOp_t op;
    NOTE("scaled sum of type %d", (int)t[k].type);
    MUST(c, ncclRedOpCreatePreMulSum(&op, &half, t[k].type, ncclScalarHostImmediate, c));
    half = 0; /* it was read */
    MUST(c, ncclAllReduce(&s, &d, 1, t[k].type, op, c, NULL));
    CHECK(memcmp(&d, &t[k].three, (size_t)t[k].size) == 0, "half of 2 three times is %#llx", (unsigned long long)d);
    MUST(c, ncclGroupStart()); /* destroyed while calls that use it are not done */
    MUST(c, ncclAllReduce(&s, &d, 1, t[k].type, op, c, NULL));
    MUST(c, ncclRedOpDestroy(op, c));
    MUST(c, ncclGroupEnd());
    CHECK(memcmp(&d, &t[k].three, (size_t)t[k].size) == 0, "half of 2 three times is %#llx", (unsigned long long)d);
    WANT(ncclInvalidArgument, c, ncclAllReduce(&s, &d, 1, t[k].type, op, c, NULL));
    WANT(ncclInvalidArgument, c, ncclRedOpDestroy(op, c));
  }
}

static void scaled_body(void) {
  ncclComm_t c = comm_new();
  means(c), scaled(c);
  MUST(c, ncclCommDestroy(c));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "same")) return same_bits() != 0;
  if (!strcmp(what, "embedded")) return job_run(4, 60, embedded_body) != 0;
  if (!strcmp(what, "small")) return job_run(32, 60, small_body) != 0;
  if (!strcmp(what, "scaled")) return job_run(3, 60, scaled_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
