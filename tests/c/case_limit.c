/* Limits: a barrier and single calls that name who has not come, a limit that is changed while something waits. */
#include "case_ops.h"

/* The last two ranks come to the library only when the others have given up. */
static void barrier_body(void) {
  ncclComm_t c = comm_new();
  for (int k = 0; k < 20; k++) MUST(c, hcclBarrier(0, c, NULL));
  NOTE("a barrier without ranks %d and %d", ranks - 2, ranks - 1);
  if (me < ranks - 2) {
    double from = now();
    char missing[64];
    ncclResult_t got = hcclBarrier(me == 0 ? 1000 : 4000, c, NULL); /* the others hear of rank 0 */
    WITHIN(3, from);
    snprintf(missing, sizeof missing, "missing: ranks %d, %d", ranks - 2, ranks - 1);
    if (me == 0) {
      CHECK(got == ncclTimeout, "result %d", got);
      SAYS(c, "rank 0 gave up after");
      SAYS(c, "a barrier");
      SAYS(c, missing);
    } else {
      CHECK(got != ncclSuccess && got != ncclInProgress, "result %d", got);
    }
    WANT(got, c, hcclBarrier(0, c, NULL)); /* for good */
    MUST(NULL, ncclCommAbort(c));
    c = NULL;
  }
  meet();
  if (c != NULL) MUST(NULL, ncclCommAbort(c));
}

/* Every operation with a limit that it keeps, then one that it does not. */
static void calls_body(void) {
  enum { N = 5000 };
  ncclComm_t c = comm_new();
  float *s = floats(N * (size_t)ranks), *d = floats(N * (size_t)ranks);
  uint64_t counts[RANKS];
  for (int r = 0; r < ranks; r++) counts[r] = 100 + (uint64_t)r;
  hcclCall_t k = HCCL_CALL_INITIALIZER;
  k.type = ncclFloat32, k.count = 100, k.send = s, k.recv = d, k.timeout = 20000;
  k.sendCounts = counts, k.recvCounts = counts;
  for (int func = 0; func <= hcclFuncAlltoAllV; func++) {
    NOTE("function %d", func);
    k.func = (hcclFunc_t)func;
    fill(s, me, 0, 100);
    if (func == hcclFuncAlltoAllV) k.recvCounts = NULL;
    if (func != hcclFuncAlltoAllV) MUST(c, hcclRun(&k, c, NULL));
    if (func == hcclFuncAllReduce) same("all-reduce", d, -ranks, 0, 100);
  }
  WANT(ncclInvalidArgument, c, hcclRun(&k, c, NULL)); /* all-to-all-v without counts */
  NOTE("messages around the ring");
  k.func = hcclFuncSend, k.root = (me + 1) % ranks, k.count = N;
  fill(s, me, 0, N);
  MUST(c, ncclGroupStart());
  MUST(c, hcclRun(&k, c, NULL));
  k.func = hcclFuncRecv, k.root = (me + ranks - 1) % ranks;
  MUST(c, hcclRun(&k, c, NULL));
  MUST(c, ncclGroupEnd());
  same("message", d, (me + ranks - 1) % ranks, 0, N);
  meet();
  NOTE("an all-reduce without rank 1");
  k.func = hcclFuncAllReduce, k.timeout = 600;
  if (me == 0) {
    WANT(ncclTimeout, c, hcclRun(&k, c, NULL));
    SAYS(c, "missing: rank 1");
  }
  meet();
  MUST(NULL, ncclCommAbort(c));
  free(s), free(d);
}

static ncclComm_t shorter;
static void* shorten(void* arg) {
  (void)arg;
  sleep_for(0.5);
  MUST(shorter, hcclCommSetTimeout(shorter, 200));
  return NULL;
}

/* A limit that another thread sets ends what waits already. */
static void change_body(void) {
  setenv("HCCL_TIMEOUT", "3600", 1);
  int64_t limit = 0;
  pthread_t t;
  ncclComm_t c = comm_new();
  MUST(c, hcclCommGetTimeout(c, &limit));
  CHECK(limit == 3600000, "limit %lld", (long long)limit);
  if (me == 0) {
    double from = now();
    shorter = c;
    pthread_create(&t, NULL, shorten, NULL);
    NOTE("an all-reduce without rank 1, which gets a limit meanwhile");
    WANT(ncclTimeout, c, sum_checked(c, 100));
    WITHIN(5, from);
    SAYS(c, "missing: rank 1");
    pthread_join(t, NULL);
  }
  meet();
  MUST(NULL, ncclCommAbort(c));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "barrier")) return job_run(5, 30, barrier_body) != 0;
  if (!strcmp(what, "calls")) return job_run(2, 30, calls_body) != 0;
  if (!strcmp(what, "change")) return job_run(2, 30, change_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
