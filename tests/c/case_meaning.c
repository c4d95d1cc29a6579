/* The meaning of the operations: nothing, in place, NULL, one rank, bad arguments. */
#include "case_ops.h"

#include <limits.h>

/* ---- zero elements and NULL ---- */

static void zero_messages(ncclComm_t c, void* p, int self) {
  int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
  float s[4] = {1, 2, 3, (float)me}, d[4] = {0};
  if (self) to = from = me;
  NOTE("messages of zero elements, %s", p == NULL ? "NULL" : "valid pointers");
  MUST(c, ncclGroupStart());
  MUST(c, ncclSend(p, 0, ncclFloat32, to, c, NULL));
  MUST(c, ncclRecv(p, 0, ncclFloat32, from, c, NULL));
  MUST(c, ncclGroupEnd());
  NOTE("messages of zero elements among others");
  MUST(c, ncclGroupStart());
  for (int k = 0; k < 4; k++) {
    MUST(c, ncclSend(k % 2 ? s + k : p, (size_t)(k % 2), ncclFloat32, to, c, NULL));
    MUST(c, ncclRecv(k % 2 ? d + k : p, (size_t)(k % 2), ncclFloat32, from, c, NULL));
  }
  MUST(c, ncclGroupEnd());
  CHECK(d[0] == 0 && d[1] == 2 && d[2] == 0 && d[3] == (float)from, "received %g %g %g %g", d[0], d[1], d[2], d[3]);
}

static void zero_body(void) {
  ncclComm_t c = comm_new();
  float mark[4] = {5, 6, 7, 8};
  for (int op = 0; op < OPS; op++) {
    NOTE("%s of nothing", op_name[op]);
    MUST(c, op_call(op, NULL, NULL, 0, 0, ranks, me, c));
    MUST(c, op_call(op, mark, mark + 2, 0, ranks - 1, ranks, me, c));
    MUST(c, op_checked(op, c, 5, 0));
  }
  CHECK(mark[0] == 5 && mark[1] == 6 && mark[2] == 7 && mark[3] == 8, "a call of nothing wrote something");
  zero_messages(c, NULL, 0), zero_messages(c, mark, 0), zero_messages(c, NULL, 1);
  if (me < 2) { /* not in a group: a small send is done without its receiver */
    NOTE("messages of nothing, alone");
    MUST(c, me == 0 ? ncclSend(NULL, 0, ncclInt8, 1, c, NULL) : ncclRecv(NULL, 0, ncclInt8, 0, c, NULL));
  }
  NOTE("a group of nothing");
  MUST(c, ncclGroupStart());
  MUST(c, ncclGroupEnd());
  ops_checked(c, 33);
  MUST(c, ncclCommDestroy(c));
}

static void zero_against_body(void) { /* a message of nothing against a receive of something */
  ncclComm_t c = comm_new();
  float p[8] = {0};
  NOTE("send of 0 against recv of 8");
  ncclResult_t got = me == 0 ? ncclSend(NULL, 0, ncclFloat32, 1, c, NULL) : ncclRecv(p, 8, ncclFloat32, 0, c, NULL);
  if (got == ncclSuccess) got = state_after(c, ncclSuccess, 5);
  CHECK(got == ncclInvalidUsage, "gave %d: %s", got, ncclGetLastError(c));
  SAYS(c, "of 0 elements");
  SAYS(c, "of 8 elements");
  meet();
  ncclCommAbort(c);
}

/* ---- in place ---- */

static void place_rooted(ncclComm_t c, float* p, size_t n, int root) {
  const size_t all = n * (size_t)ranks, mine = n * (size_t)me;
  fill(p, me, 0, n);
  MUST(c, ncclBroadcast(p, p, n, ncclFloat32, root, c, NULL));
  same("broadcast in place", p, root, 0, n);
  fill(p, me, 0, n);
  MUST(c, ncclReduce(p, p, n, ncclFloat32, ncclSum, root, c, NULL));
  if (me == root) same("reduce in place", p, -ranks, 0, n);
  float* q = floats(all);
  fill(q, me, 0, all), fill(p, me, 0, all);
  if (me == root) fill(p + mine, me, 0, n);
  MUST(c, ncclGather(me == root ? p + mine : q, p, n, ncclFloat32, root, c, NULL));
  for (int r = 0; r < ranks && me == root; r++) same("gather in place", p + (size_t)r * n, r, 0, n);
  fill(p, me, 0, all);
  MUST(c, ncclScatter(p, me == root ? p + mine : q, n, ncclFloat32, root, c, NULL));
  same("scatter in place", me == root ? p + mine : q, root, mine, n);
  free(q);
}

static void place(ncclComm_t c, size_t n) {
  const size_t all = n * (size_t)ranks, mine = n * (size_t)me;
  float* p = floats(all);
  NOTE("in place, %zu", n);
  fill(p + mine, me, 0, n);
  MUST(c, ncclAllGather(p + mine, p, n, ncclFloat32, c, NULL));
  for (int r = 0; r < ranks; r++) same("all-gather in place", p + (size_t)r * n, r, 0, n);
  fill(p, me, 0, all);
  MUST(c, ncclReduceScatter(p, p + mine, n, ncclFloat32, ncclSum, c, NULL));
  same("reduce-scatter in place", p + mine, -ranks, mine, n);
  fill(p, me, 0, all);
  MUST(c, ncclAllReduce(p, p, all, ncclFloat32, ncclSum, c, NULL));
  same("all-reduce in place", p, -ranks, 0, all);
  fill(p, me, 0, all);
  ncclResult_t got = ncclAlltoAll(p, p, n, ncclFloat32, c, NULL); /* right, or refused on all ranks alike */
  CHECK(got == ncclSuccess || got == ncclInvalidArgument, "all-to-all in place gave %d", got);
  for (int r = 0; r < ranks && got == ncclSuccess; r++) same("all-to-all in place", p + (size_t)r * n, r, mine, n);
  for (int root = 0; root < ranks; root++) place_rooted(c, p, n, root);
  free(p);
}

/* Buffers that overlap by all but one element: right, or refused on every rank. */
static void shifted(ncclComm_t c, size_t n) {
  float* p = floats(n + 1);
  NOTE("overlap shifted by one, %zu", n);
  for (int back = 0; back < 2; back++) {
    float *s = p + back, *d = p + !back;
    fill(s, me, 0, n);
    ncclResult_t got = ncclAllReduce(s, d, n, ncclFloat32, ncclSum, c, NULL);
    CHECK(got == ncclSuccess || got == ncclInvalidArgument, "gave %d", got);
    if (got == ncclSuccess) same("all-reduce with overlap", d, -ranks, 0, n);
    MUST(c, sum_checked(c, 10));
  }
  free(p);
}

static void place_body(void) {
  ncclComm_t c = comm_new();
  for (size_t n = 1; n < 400000; n *= 17) place(c, n), shifted(c, n + 1);
  MUST(c, ncclCommDestroy(c));
}

/* ---- NULL and bad arguments ---- */

#define REFUSED(word, call) \
  do { \
    WANT(ncclInvalidArgument, c, call); \
    SAYS(c, word); \
  } while (0)

static void null_body(void) {
  ncclComm_t c = comm_new();
  float s[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, d[9] = {0};
  NOTE("NULL where the buffer is not used");
  MUST(c, ncclBroadcast(me == 1 ? s : NULL, d, 9, ncclFloat32, 1, c, NULL));
  MUST(c, ncclReduce(s, me == 1 ? d : NULL, 9, ncclFloat32, ncclSum, 1, c, NULL));
  MUST(c, ncclGather(s, me == 1 ? d : NULL, 3, ncclFloat32, 1, c, NULL));
  MUST(c, ncclScatter(me == 1 ? s : NULL, d, 3, ncclFloat32, 1, c, NULL));
  NOTE("arguments that are refused at once");
  REFUSED("root", ncclBroadcast(s, d, 9, ncclFloat32, -1, c, NULL));
  REFUSED("root", ncclReduce(s, d, 9, ncclFloat32, ncclSum, 3, c, NULL));
  REFUSED("op", ncclAllReduce(s, d, 9, ncclFloat32, (ncclRedOp_t)99, c, NULL));
  REFUSED("type", ncclAllReduce(s, d, 9, (ncclDataType_t)99, ncclSum, c, NULL));
  REFUSED("count", ncclAllReduce(s, d, SIZE_MAX, ncclFloat32, ncclSum, c, NULL));
  REFUSED("receive", ncclAllReduce(s, NULL, 9, ncclFloat32, ncclSum, c, NULL));
  REFUSED("peer", ncclSend(s, 9, ncclFloat32, 3, c, NULL));
  if (me == 1) {
    REFUSED("send", ncclBroadcast(NULL, d, 9, ncclFloat32, 1, c, NULL));
    REFUSED("receive", ncclReduce(s, NULL, 9, ncclFloat32, ncclSum, 1, c, NULL));
  }
  meet();
  MUST(c, sum_checked(c, 100)); /* a refused call has no number: the ranks still agree */
  NOTE("NULL on rank 1 only");
  ncclResult_t got;
  double start = now();
  if (me == 1) {
    REFUSED("send", ncclAllReduce(NULL, d, 9, ncclFloat32, ncclSum, c, NULL));
    WANT(ncclSuccess, NULL, ncclCommAbort(c)); /* what a program does that meets an error: the others are told */
  } else {
    got = ncclAllReduce(s, d, 9, ncclFloat32, ncclSum, c, NULL);
    CHECK(got == ncclRemoteError, "gave %d: %s", got, ncclGetLastError(c));
    WITHIN(5, start);
    SAYS(c, "rank 1");
    WANT(ncclSuccess, NULL, ncclCommAbort(c));
  }
}

/* ---- a communicator of one rank ---- */

static void single_ops(ncclComm_t c) {
  static const ncclRedOp_t reds[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
  for (int op = 0; op < OPS; op++) MUST(c, op_checked(op, c, 1000, 0));
  for (int k = 0; k < 5; k++) {
    double s[3] = {1.5, -2, 1e300}, d[3] = {0};
    MUST(c, ncclAllReduce(s, d, 3, ncclFloat64, reds[k], c, NULL));
    CHECK(memcmp(s, d, sizeof s) == 0, "operation %d over one rank is no copy", k);
    MUST(c, ncclReduceScatter(s, s, 3, ncclFloat64, reds[k], c, NULL));
    CHECK(memcmp(s, d, sizeof s) == 0, "operation %d in place over one rank is no copy", k);
  }
  float half = 0.5f, s[3] = {1, 3, -8}, d[3] = {0};
  ncclRedOp_t scaled;
  MUST(c, ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat32, ncclScalarHostImmediate, c));
  MUST(c, ncclAllReduce(s, d, 3, ncclFloat32, scaled, c, NULL));
  CHECK(d[0] == 0.5f && d[1] == 1.5f && d[2] == -4, "scaled once: %g %g %g", d[0], d[1], d[2]);
  MUST(c, ncclReduce(s, s, 3, ncclFloat32, scaled, 0, c, NULL));
  CHECK(s[0] == 0.5f && s[1] == 1.5f && s[2] == -4, "scaled once in place: %g %g %g", s[0], s[1], s[2]);
  MUST(c, ncclRedOpDestroy(scaled, c));
}

static void single_body(void) {
  enum { N = 100 };
  ncclComm_t c[N];
  c[0] = comm_new();
  single_ops(c[0]);
  long rss = proc_number("/proc/self/status", "VmRSS");
  int fds = descriptors(), tasks = threads();
  double start = now();
  for (int k = 1; k < N; k++) c[k] = comm_new();
  double each = (now() - start) / (N - 1);
  CHECK(each < 0.02, "%.1f ms for each", each * 1e3); /* 5 on a machine that does nothing else */
  for (int k = 0; k < N; k++) MUST(c[k], sum_checked(c[k], 100));
  rss = proc_number("/proc/self/status", "VmRSS") - rss;
  CHECK(rss < 10 << 10, "%ld KiB for %d", rss, N);
  CHECK(descriptors() <= fds + N, "%d descriptors, before %d", descriptors(), fds);
  CHECK(threads() <= tasks + 3, "%d threads, before %d", threads(), tasks);
  for (int k = 0; k < N; k++) MUST(c[k], ncclCommDestroy(c[k]));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "zero")) return (job_run(2, 40, zero_body) | job_run(4, 40, zero_body)) != 0;
  if (!strcmp(what, "zero_against")) return job_run(2, 40, zero_against_body) != 0;
  if (!strcmp(what, "place")) return job_run(4, 40, place_body) != 0;
  if (!strcmp(what, "null")) return job_run(3, 40, null_body) != 0;
  if (!strcmp(what, "single")) return job_run(1, 40, single_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
