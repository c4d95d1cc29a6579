/* Ranks that disagree about a call: all of them are told, with both versions; ranks that are only late are not an error. */
#include "case_ops.h"

static size_t count_odd, count_even; /* what rank 1 and the others give */
static int op;
static char word_a[32], word_b[32];

/* All ranks hold ncclInvalidUsage, from the call or (who needed nothing from the others) soon afterwards, and a text with both words.
   Then the communicator is aborted and another one works. */
static void all_told(ncclComm_t comm, ncclResult_t got, double start, const char* a, const char* b) {
  if (got == ncclSuccess) got = state_after(comm, ncclSuccess, 5);
  CHECK(got == ncclInvalidUsage, "gave %d, not ncclInvalidUsage: %s", got, ncclGetLastError(comm));
  WITHIN(8, start);
  SAYS(comm, a);
  SAYS(comm, b);
  meet();
  start = now();
  NOTE("abort");
  WANT(ncclSuccess, NULL, ncclCommAbort(comm));
  WITHIN(2, start);
  NOTE("a new communicator");
  comm = comm_of(1, ranks, me);
  MUST(comm, sum_checked(comm, 1000));
  MUST(comm, ncclCommDestroy(comm));
}

static void counts_body(void) {
  size_t count = me == 1 ? count_odd : count_even, most = (count_odd > count_even ? count_odd : count_even) * (size_t)ranks;
  ncclComm_t comm = comm_new();
  float *s = floats(most), *d = floats(most);
  fill(s, me, 0, most < 100 ? most : 100);
  NOTE("%s of %zu, of %zu at rank 1", op_name[op], count_even, count_odd);
  meet();
  double start = now();
  ncclResult_t got = op_call(op, s, d, count, 0, ranks, me, comm);
  all_told(comm, got, start, word_a, word_b);
  free(s), free(d);
}

static int counts(int n) {
  static const struct { int op; size_t even, odd; } tries[] = {
      {ALL_REDUCE, 1000, 1001}, {ALL_REDUCE, 1, 2}, {ALL_REDUCE, 0, 1}, {ALL_REDUCE, 1048576, 1048577}, {ALL_REDUCE, 8388608, 8000000},
      {ALL_GATHER, 1000, 1001}, {ALL_GATHER, 100000, 99999}, {BROADCAST, 1000, 1001}, {BROADCAST, 300000, 299999},
      {REDUCE_SCATTER, 1000, 1001}, {REDUCE_SCATTER, 100000, 99999}};
  int faults = 0;
  for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++) {
    op = tries[k].op, count_even = tries[k].even, count_odd = tries[k].odd;
    snprintf(word_a, sizeof word_a, "of %zu elements", count_even);
    snprintf(word_b, sizeof word_b, "of %zu elements", count_odd);
    faults += job_run(n, 30, counts_body);
  }
  return faults;
}

/* ---- different calls, roots, order ---- */

static const char* how;

static void calls_body(void) {
  enum { N = 300 };
  float *s = floats(N * 3), *d = floats(N * 3);
  ncclComm_t comm = comm_new();
  ncclResult_t got;
  fill(s, me, 0, N * 3);
  NOTE("%s", how);
  meet();
  double start = now();
  if (!strcmp(how, "function")) {
    got = me == 0 ? op_call(ALL_REDUCE, s, d, N, 0, 3, me, comm) : op_call(ALL_GATHER, s, d, N / 3, 0, 3, me, comm);
    all_told(comm, got, start, "all-reduce", "all-gather");
  } else if (!strcmp(how, "order")) {
    got = op_call(me == 0 ? BROADCAST : ALL_REDUCE, s, d, N, 0, 3, me, comm);
    if (got == ncclSuccess) got = op_call(me == 0 ? ALL_REDUCE : BROADCAST, s, d, N, 0, 3, me, comm);
    all_told(comm, got, start, "all-reduce", "broadcast");
  } else {
    got = op_call(BROADCAST, s, d, N, me == 1, 3, me, comm);
    all_told(comm, got, start, "root 0", "root 1");
  }
  free(s), free(d);
}

static void extra_body(void) {
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 100));
  if (me == 2) {
    NOTE("one all-reduce more than the others");
    double start = now();
    ncclResult_t got = sum_checked(comm, 100);
    CHECK(got == ncclRemoteError, "gave %d: %s", got, ncclGetLastError(comm));
    CHECK(strpbrk(ncclGetLastError(comm), "01") != NULL, "\"%s\" names neither rank 0 nor 1", ncclGetLastError(comm));
    WITHIN(8, start);
    SAYS(comm, "left");
  }
  NOTE("destroy");
  double start = now();
  ncclCommDestroy(comm);
  WITHIN(3, start);
}

/* ---- one rank with another setting ---- */

static void settings_body(void) {
  if (me == ranks - 1) putenv((char*)(uintptr_t)how);
  setenv("HCCL_INIT_TIMEOUT", "20", 1);
  ncclComm_t comm = NULL;
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet();
  NOTE("init with %s at rank %d alone", how, ranks - 1);
  ncclResult_t got = ncclCommInitRank(&comm, ranks, job->id[0], me);
  job->word[me][0] = got + 1;
  meet();
  for (int r = 0; r < ranks; r++) CHECK(job->word[r][0] == got + 1, "init gave %d here, %ld at rank %d", got, job->word[r][0] - 1, r);
  if (got != ncclSuccess) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(how, "="), how);
    SAYS(NULL, name);
    return;
  }
  for (size_t n = 2; n <= 2 << 20; n *= 32) ops_checked(comm, n / (size_t)ranks + 1);
  MUST(comm, ncclCommDestroy(comm));
}

static int settings(void) {
  static const char* const each[] = {"NCCL_ALGO=Ring", "NCCL_ALGO=Tree", "NCCL_PROTO=Simple", "NCCL_BUFFSIZE=65536",
                                     "NCCL_MAX_NCHANNELS=1", "NCCL_SHM_DISABLE=1", "NCCL_NET=Socket", "NCCL_P2P_DISABLE=1"};
  int faults = 0;
  for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) {
    how = each[k];
    faults += job_run(4, 60, settings_body);
  }
  return faults;
}

/* ---- one rank comes much later: for every operation ---- */

static double delay;

static void late_body(void) {
  ncclComm_t comm = comm_new();
  MUST(comm, op_checked(op, comm, 10000, 0));
  meet();
  NOTE("%s, rank %d comes late", op_name[op], ranks - 1);
  if (me == ranks - 1) sleep_for(delay);
  MUST(comm, op_checked(op, comm, 10000, 0));
  MUST(comm, op_checked(op, comm, 10, 0));
  MUST(comm, ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  how = argc > 2 ? argv[2] : "";
  if (!strcmp(what, "counts")) return counts(atoi(how)) != 0;
  if (!strcmp(what, "calls") && !strcmp(how, "extra")) return job_run(3, 30, extra_body) != 0;
  if (!strcmp(what, "calls")) return job_run(3, 30, calls_body) != 0;
  if (!strcmp(what, "settings")) return settings() != 0;
  if (!strcmp(what, "late") && argc > 3) { /* late OPERATION RANKS */
    op = atoi(how);
    delay = times(2, 45);
    return job_run(atoi(argv[3]), 60, late_body) != 0;
  }
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
