/* Every element where it belongs: odd addresses and tails of all types, and counts past 2^31 and 2^32. */
#include "case_ops.h"

/* ---- all types, offsets and tails: integers below 8 in every type, so that a sum over 3 ranks is exact in all ---- */

static const struct { ncclDataType_t type; int size; const char* name; } types[] = {
    {ncclInt8, 1, "int8"}, {ncclUint8, 1, "uint8"}, {ncclInt32, 4, "int32"}, {ncclUint32, 4, "uint32"}, {ncclInt64, 8, "int64"},
    {ncclUint64, 8, "uint64"}, {ncclFloat16, 2, "float16"}, {ncclFloat32, 4, "float32"}, {ncclFloat64, 8, "float64"},
    {ncclBfloat16, 2, "bfloat16"}, {ncclFloat8e4m3, 1, "float8e4m3"}, {ncclFloat8e5m2, 1, "float8e5m2"}};
enum { TYPES = sizeof types / sizeof types[0], MOST = 65537, ROOM = 3 * MOST + 64 };

/* Floats of few bits: a small whole number v as sign, exponent and fraction, with so many bits of each. */
static uint64_t small_float(int v, int fraction, int bias) {
  int e = 0;
  if (v == 0) return 0;
  while (v >> (e + 1)) e++;
  return ((uint64_t)(e + bias) << fraction) | ((((uint64_t)v << fraction) >> e) & ((1ull << fraction) - 1));
}
static uint64_t encode(ncclDataType_t t, int v) {
  switch (t) {
    case ncclFloat16: return small_float(v, 10, 15);
    case ncclFloat32: return small_float(v, 23, 127);
    case ncclFloat64: return small_float(v, 52, 1023);
    case ncclBfloat16: return small_float(v, 7, 127);
    case ncclFloat8e4m3: return small_float(v, 3, 7);
    case ncclFloat8e5m2: return small_float(v, 2, 15);
    default: return (uint64_t)v;
  }
}
/* Element i of rank r: 0 or 1, so that sums over 3 ranks stay below 4, which even two bits of fraction hold. */
static int bit_of(int r, size_t i) { return (int)((i * 2654435761u >> 7) + (size_t)r * i) & 1; }

static void put(char* p, int k, int r, size_t from, size_t n) {
  uint64_t zero = encode(types[k].type, 0), one = encode(types[k].type, 1);
  for (size_t i = 0; i < n; i++) memcpy(p + i * (size_t)types[k].size, bit_of(r, from + i) ? &one : &zero, (size_t)types[k].size);
}
/* r < 0: the sum over all ranks. */
static void holds(const char* what, const char* p, int k, int r, size_t from, size_t n) {
  uint64_t code[4];
  for (int v = 0; v < 4; v++) code[v] = encode(types[k].type, v);
  for (size_t i = 0; i < n; i++) {
    int v = r >= 0 ? bit_of(r, from + i) : 0;
    for (int q = 0; q < ranks && r < 0; q++) v += bit_of(q, from + i);
    if (memcmp(p + i * (size_t)types[k].size, &code[v], (size_t)types[k].size) != 0) {
      FAULT("%s of %zu %s: element %zu is not %d", what, n, types[k].name, i, v);
      return;
    }
  }
}

/* All operations of one type and count, from element a of the send buffer to element b of the receive buffer; guards around it. */
static void odd(ncclComm_t c, char* sb, char* db, int k, size_t n, size_t a, size_t b) {
  const size_t z = (size_t)types[k].size, all = n * (size_t)ranks;
  const ncclDataType_t t = types[k].type;
  char *s = sb + 64 + a * z, *d = db + 64 + b * z;
  NOTE("%s, %zu elements, offsets %zu and %zu", types[k].name, n, a, b);
  put(s, k, me, 0, all);
  memset(db, 0x5a, 128 + (b + all) * z);
  MUST(c, ncclAllReduce(s, d, n, t, ncclSum, c, NULL));
  holds("all-reduce", d, k, -1, 0, n);
  CHECK(d[-1] == 0x5a && d[n * z] == 0x5a, "all-reduce of %zu %s wrote beside its buffer", n, types[k].name);
  MUST(c, ncclReduceScatter(s, d, n, t, ncclSum, c, NULL));
  holds("reduce-scatter", d, k, -1, n * (size_t)me, n);
  MUST(c, ncclReduce(s, d, n, t, ncclSum, 2, c, NULL));
  if (me == 2) holds("reduce", d, k, -1, 0, n);
  MUST(c, ncclBroadcast(s, d, n, t, 1, c, NULL));
  holds("broadcast", d, k, 1, 0, n);
  MUST(c, ncclAllGather(s, d, n, t, c, NULL));
  for (int r = 0; r < ranks; r++) holds("all-gather", d + (size_t)r * n * z, k, r, 0, n);
  CHECK(d[-1] == 0x5a && d[all * z] == 0x5a, "all-gather of %zu %s wrote beside its buffer", n, types[k].name);
  MUST(c, ncclAlltoAll(s, d, n, t, c, NULL));
  for (int r = 0; r < ranks; r++) holds("all-to-all", d + (size_t)r * n * z, k, r, n * (size_t)me, n);
  MUST(c, ncclGroupStart());
  MUST(c, ncclSend(s, n, t, (me + 1) % ranks, c, NULL));
  MUST(c, ncclRecv(d, n, t, (me + 2) % ranks, c, NULL));
  MUST(c, ncclGroupEnd());
  holds("message", d, k, (me + 2) % ranks, 0, n);
}

static void odd_body(void) {
  static const size_t tails[] = {255, 256, 257, 65535, 65537};
  char *s = (char*)malloc(ROOM * 8), *d = (char*)malloc(ROOM * 8);
  ncclComm_t c = comm_new();
  for (int k = 0; k < TYPES; k++) {
    for (size_t n = 1; n <= 67; n++) odd(c, s, d, k, n, n % 16, n * 7 % 16);
    for (size_t a = 0; a < 16; a++) odd(c, s, d, k, 200 + a, a, 15 - a);
    for (size_t i = 0; i < 5; i++) odd(c, s, d, k, tails[i], i * 3 + 1, i * 5 % 16);
  }
  MUST(c, ncclCommDestroy(c));
  free(s), free(d);
}

/* ---- more than 2 and 4 GiB ---- */

static long extra_memory(long before) { return (proc_number("/proc/self/status", "VmHWM") - before) >> 10; }

static void mark(uint8_t* p, size_t n, int r) { /* around the places where 32 bits end, and at both ends */
  const size_t at[] = {0, 1, (1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1, (1ull << 32) - 1, 1ull << 32, n - 1};
  for (size_t k = 0; k < 8; k++) {
    if (at[k] < n) p[at[k]] = (uint8_t)(10 + 20 * r + (int)k);
  }
}
static void marked(const char* what, const uint8_t* p, size_t n, int r) { /* r < 0: the sum of both ranks */
  const size_t at[] = {0, 1, (1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1, (1ull << 32) - 1, 1ull << 32, n - 1};
  for (size_t k = 0; k < 8; k++) {
    /* n - 1 may be one of the others: the last mark stays */
    int tag = (int)k, want;
    for (int j = (int)k + 1; j < 8; j++) tag = at[j] == at[k] ? j : tag;
    want = r < 0 ? 40 + 2 * tag : 10 + 20 * r + tag;
    if (at[k] < n) CHECK(p[at[k]] == want, "%s: element %zu is %d, not %d", what, at[k], p[at[k]], want);
  }
}

static void big_body(void) {
  const size_t most = (1ull << 32) + 3, half = (1ull << 31) + 5;
  ncclComm_t c = comm_new();
  MUST(c, sum_checked(c, 1 << 20));
  uint8_t* p = (uint8_t*)mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) FAULT("no memory");
  NOTE("all-reduce of 2^32+3 int8 in place");
  memset(p, 0, most), mark(p, most, me);
  long before = proc_number("/proc/self/status", "VmHWM");
  MUST(c, ncclAllReduce(p, p, most, ncclInt8, ncclSum, c, NULL));
  marked("all-reduce", p, most, -1);
  NOTE("broadcast of 2^31+5 int8");
  mark(p, half, me);
  MUST(c, ncclBroadcast(p, p, half, ncclInt8, 1, c, NULL));
  marked("broadcast", p, half, 1);
  NOTE("message of 2^31+5 bytes");
  mark(p, half, me);
  MUST(c, me == 0 ? ncclSend(p, half, ncclInt8, 1, c, NULL) : ncclRecv(p, half, ncclInt8, 0, c, NULL));
  marked("message", p, half, 0);
  NOTE("all-gather of 2^31 float16 in all");
  const size_t n = 1ull << 30; /* elements of each rank: 2^32 bytes fit into the buffer */
  mark(p + (size_t)me * n * 2, n * 2, me);
  MUST(c, ncclAllGather(p + (size_t)me * n * 2, p, n, ncclFloat16, c, NULL));
  for (int r = 0; r < 2; r++) marked("all-gather", p + (size_t)r * n * 2, n * 2, r);
  CHECK(extra_memory(before) < 64, "%ld MiB more than before the operations", extra_memory(before));
  MUST(c, ncclCommDestroy(c));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "odd")) return job_run(3, 60, odd_body) != 0;
  if (!strcmp(what, "big")) return job_run(2, 300, big_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
