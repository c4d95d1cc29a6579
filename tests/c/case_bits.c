/* Elements and reductions that only HCCL has: 16-bit integers, bool, and/or/xor; in every operation that takes a type, small and large. */
#include "case_ops.h"

enum { COUNTS = 4 };
static const size_t counts[COUNTS] = {1, 37, 4000, 100003}; /* by mail in one line, by mail, by plan, in slices */

static const struct reduction {
  const char* name;
  ncclRedOp_t op;
} reductions[] = {{"sum", ncclSum}, {"prod", ncclProd}, {"max", ncclMax}, {"min", ncclMin}, {"avg", ncclAvg},
                  {"and", hcclBitAnd}, {"or", hcclBitOr}, {"xor", hcclBitXor}};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

/* What rank r gives at i: all bits are used, so that sums and products wrap. */
static uint16_t given(int r, size_t i) { return (uint16_t)((unsigned)(i * 40503u) ^ (unsigned)(r * 9973 + 77)); }
/* A truth by any byte but 0. */
static unsigned char truth(int r, size_t i) { return (i + (size_t)r * 3) % 5 < 3 ? (unsigned char)(1 + (i * 7 + (size_t)r) % 255) : 0; }

static int64_t combine(ncclRedOp_t op, int64_t a, int64_t b) {
  switch ((int)op) {
    case ncclProd: return a * b;
    case ncclMax: return a > b ? a : b;
    case ncclMin: return a < b ? a : b;
    case hcclBitAnd: return a & b;
    case hcclBitOr: return a | b;
    case hcclBitXor: return a ^ b;
    default: return a + b;
  }
}

static int64_t number(ncclDataType_t type, uint16_t bits) { return type == hcclInt16 ? (int64_t)(int16_t)bits : (int64_t)bits; }

static uint16_t wanted(ncclDataType_t type, ncclRedOp_t op, size_t i) {
  int64_t acc = number(type, given(0, i));
  for (int r = 1; r < ranks; r++) {
    acc = combine(op, acc, number(type, given(r, i)));
    if (op == ncclProd) acc = (int64_t)(uint16_t)acc; /* what is above is lost anyhow */
  }
  return (uint16_t)(op == ncclAvg ? acc / ranks : acc); /* exact, towards zero */
}

static unsigned char wanted_truth(ncclRedOp_t op, size_t i) {
  int n = 0;
  for (int r = 0; r < ranks; r++) n += truth(r, i) != 0;
  switch ((int)op) {
    case ncclSum: case ncclMax: case hcclBitOr: return n > 0;
    case hcclBitXor: return n % 2;
    default: return n == ranks;
  }
}

static void sixteen(ncclComm_t c, ncclDataType_t type, const struct reduction* red, size_t n) {
  uint16_t *s = (uint16_t*)malloc(n * 2), *d = (uint16_t*)malloc(n * 2);
  for (size_t i = 0; i < n; i++) s[i] = given(me, i), d[i] = 0;
  NOTE("%s of %zu of type %d", red->name, n, (int)type);
  MUST(c, ncclAllReduce(s, d, n, type, red->op, c, NULL));
  for (size_t i = 0; i < n; i++) {
    if (d[i] != wanted(type, red->op, i)) {
      FAULT("element %zu is %d, not %d", i, d[i], wanted(type, red->op, i));
      break;
    }
  }
  free(s), free(d);
}

static void truths(ncclComm_t c, const struct reduction* red, size_t n) {
  unsigned char *s = (unsigned char*)malloc(n), *d = (unsigned char*)malloc(n);
  for (size_t i = 0; i < n; i++) s[i] = truth(me, i), d[i] = 9;
  NOTE("%s of %zu truths", red->name, n);
  MUST(c, ncclAllReduce(s, d, n, hcclBool, red->op, c, NULL));
  for (size_t i = 0; i < n; i++) {
    if (d[i] != wanted_truth(red->op, i)) {
      FAULT("element %zu is %d, not %d", i, d[i], wanted_truth(red->op, i));
      break;
    }
  }
  MUST(c, ncclBroadcast(s, d, n, hcclBool, 0, c, NULL)); /* what only moves keeps its bytes */
  for (size_t i = 0; i < n; i++) CHECK(d[i] == truth(0, i), "broadcast byte %zu is %d", i, d[i]);
  free(s), free(d);
}

/* The bits of wide integers, and the other operations that reduce. */
static void wide(ncclComm_t c, size_t n) {
  uint64_t *s = (uint64_t*)malloc(n * 8 * (size_t)ranks), *d = (uint64_t*)malloc(n * 8), want;
  for (size_t i = 0; i < n * (size_t)ranks; i++) s[i] = (uint64_t)1 << (me * 7 + (int)(i % 5)) | (uint64_t)i << 40;
  NOTE("or of %zu of 64 bits", n);
  MUST(c, ncclReduceScatter(s, d, n, ncclUint64, hcclBitOr, c, NULL));
  for (size_t i = 0; i < n; i++) {
    size_t k = (size_t)me * n + i;
    want = (uint64_t)k << 40;
    for (int r = 0; r < ranks; r++) want |= (uint64_t)1 << (r * 7 + (int)(k % 5));
    CHECK(d[i] == want, "element %zu is %llx, not %llx", i, (unsigned long long)d[i], (unsigned long long)want);
    if (d[i] != want) break;
  }
  MUST(c, ncclReduce(s, d, n, ncclInt64, hcclBitXor, ranks - 1, c, NULL));
  for (size_t i = 0; i < n && me == ranks - 1; i++) {
    want = ranks % 2 ? (uint64_t)i << 40 : 0;
    for (int r = 0; r < ranks; r++) want ^= (uint64_t)1 << (r * 7 + (int)(i % 5));
    CHECK(d[i] == want, "xor: element %zu is %llx, not %llx", i, (unsigned long long)d[i], (unsigned long long)want);
    if (d[i] != want) break;
  }
  free(s), free(d);
}

static void scaled(ncclComm_t c) {
  uint16_t s[100], d[100], factor = (uint16_t)(3 + me), want = 0;
  ncclRedOp_t op;
  NOTE("scaled sum");
  for (int i = 0; i < 100; i++) s[i] = 40000;
  MUST(c, ncclRedOpCreatePreMulSum(&op, &factor, hcclUint16, ncclScalarHostImmediate, c));
  MUST(c, ncclAllReduce(s, d, 100, hcclUint16, op, c, NULL));
  for (int r = 0; r < ranks; r++) want = (uint16_t)(want + 40000u * (unsigned)(3 + r));
  for (int i = 0; i < 100; i++) CHECK(d[i] == want, "element %d is %d, not %d", i, d[i], want);
  MUST(c, ncclRedOpDestroy(op, c));
}

static void body(void) {
  ncclComm_t c = comm_new();
  for (int k = 0; k < COUNTS; k++) {
    for (int r = 0; r < REDUCTIONS; r++) {
      sixteen(c, hcclInt16, &reductions[r], counts[k]);
      sixteen(c, hcclUint16, &reductions[r], counts[k]);
      if (reductions[r].op != ncclAvg) truths(c, &reductions[r], counts[k]);
    }
    wide(c, counts[k]);
  }
  scaled(c);
  MUST(c, ncclCommDestroy(c));
}

int main(void) {
  int faults = 0;
  for (int n = 2; n <= 5; n++) faults += job_run(n, 30, body);
  setenv("NCCL_ALGO", "direct", 1);
  return faults + job_run(3, 30, body) != 0;
}
