/* Streams of host memory: faults, ends and costs. */
#include "case_ops.h"

static cudaStream_t stream_new(void) {
  cudaStream_t s = NULL;
  MUST(NULL, hcclStreamCreate(&s));
  return s;
}
struct gate { _Atomic int open; };
static void hold(void* p) {
  struct gate* g = (struct gate*)p;
  while (!g->open) futex_wait(&g->open, 0);
}
static void open_gate(struct gate* g) {
  g->open = 1;
  futex_wake(&g->open);
}
static void count_up(void* p) { atomic_fetch_add((_Atomic int*)p, 1); }

static float buff[1 << 20], result[1 << 20];
static const size_t many = 1 << 20;

/* ---- wrong arguments at the call; ranks that disagree at the synchronisation, once, and in the communicator for good ---- */

static void errors_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t s = stream_new();
  ncclResult_t state;
  WANT(ncclInvalidArgument, c, ncclAllReduce(NULL, result, 10, ncclFloat32, ncclSum, c, s));
  SAYS(c, "send buffer is NULL");
  WANT(ncclInvalidArgument, c, ncclAllReduce(buff, result, 10, ncclFloat32, ncclSum, c, (cudaStream_t)(size_t)&c));
  SAYS(c, "no stream");
  MUST(NULL, hcclStreamQuery(s));
  MUST(c, ncclAllReduce(buff, result, 10, ncclFloat32, ncclSum, c, s));
  MUST(NULL, hcclStreamSynchronize(s));
  NOTE("counts that differ");
  MUST(c, ncclAllReduce(buff, result, many - (size_t)me, ncclFloat32, ncclSum, c, s));
  double start = now();
  WANT(ncclInvalidUsage, c, hcclStreamSynchronize(s));
  WITHIN(5, start);
  SAYS(NULL, "of 1048576 elements");
  SAYS(NULL, "of 1048575 elements");
  MUST(NULL, hcclStreamSynchronize(s));
  MUST(c, ncclCommGetAsyncError(c, &state));
  CHECK(state == ncclInvalidUsage, "the state is %d", (int)state);
  SAYS(c, "disagree");
  WANT(ncclInvalidUsage, c, ncclAllReduce(buff, result, 10, ncclFloat32, ncclSum, c, s));
  MUST(NULL, hcclStreamQuery(s));
  meet();
  ncclCommAbort(c);
}

/* ---- a rank is killed ---- */

static void killed_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t s = stream_new();
  if (me == 1) {
    die_in(0.2);
    for (;;) sleep_for(1);
  }
  for (int i = 0; i < 20; i++) MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s));
  NOTE("waiting for a rank that is killed");
  double start = now();
  WANT(ncclRemoteError, c, hcclStreamSynchronize(s));
  WITHIN(5, start);
  SAYS(NULL, "rank 1 is gone");
  ncclCommAbort(c);
}

/* ---- a limit ends what runs on a stream; what is queued behind it fails with it ---- */

static void limit_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t s = stream_new();
  if (me == 0) {
    MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s)); /* rank 1 makes none */
    MUST(c, ncclAllReduce(buff, result, 1, ncclFloat32, ncclSum, c, s));
    NOTE("waiting for a limit");
    double start = now();
    WANT(ncclTimeout, NULL, hcclStreamQuery(s) == ncclInProgress ? hcclStreamSynchronize(s) : ncclSuccess);
    WITHIN(3, start);
    SAYS(NULL, "missing: rank 1");
    MUST(NULL, hcclStreamQuery(s));
  }
  meet();
  ncclCommAbort(c);
}

/* ---- abort ends what runs and what is queued; the stream goes on ---- */

static void* aborts(void* c) {
  sleep_for(0.2);
  if (ncclCommAbort((ncclComm_t)c) != ncclSuccess) FAULT("abort: %s", ncclGetLastError(NULL));
  return NULL;
}
static void abort_body(void) {
  ncclComm_t c = comm_of(0, ranks, me), other = comm_of(1, ranks, me);
  cudaStream_t s = stream_new();
  _Atomic int reached = 0;
  pthread_t t;
  if (me == 0) {
    for (int i = 0; i < 5; i++) MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s)); /* rank 1 makes none */
    MUST(NULL, hcclStreamLaunchHostFunc(s, count_up, &reached));
    pthread_create(&t, NULL, aborts, c);
    NOTE("waiting for an abort");
    double start = now();
    WANT(ncclInvalidUsage, NULL, hcclStreamSynchronize(s));
    WITHIN(2, start);
    SAYS(NULL, "abort");
    CHECK(reached == 1, "the stream stopped with its communicator");
    pthread_join(t, NULL);
  }
  MUST(other, ncclAllReduce(buff, result, 1000, ncclFloat32, ncclSum, other, s));
  MUST(NULL, hcclStreamSynchronize(s));
  meet();
  if (me != 0) ncclCommAbort(c);
  MUST(other, ncclCommDestroy(other));
}

/* ---- destroy and finalize wait for what is queued; so do calls on NULL behind a stream that is destroyed ---- */

static void* opens(void* g) {
  sleep_for(0.1);
  open_gate((struct gate*)g);
  return NULL;
}
static void destroy_body(void) {
  for (int how = 0; how < 3; how++) {
    static const char* const name[] = {"destroy", "finalize", "a call on NULL"};
    ncclComm_t c = comm_new();
    cudaStream_t s = stream_new();
    struct gate gate = {0};
    pthread_t t;
    NOTE("%s with work queued", name[how]);
    fill(buff, me, 0, many), blank(result, many);
    MUST(NULL, hcclStreamLaunchHostFunc(s, hold, &gate));
    MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s));
    MUST(NULL, hcclStreamDestroy(s));
    pthread_create(&t, NULL, opens, &gate);
    if (how == 0) MUST(c, ncclCommDestroy(c));
    if (how == 1) MUST(c, ncclCommFinalize(c));
    if (how == 2) MUST(c, sum_checked(c, 10));
    same("queued all-reduce", result, -ranks, 0, many);
    if (how != 0) MUST(c, ncclCommDestroy(c));
    pthread_join(t, NULL);
  }
}

/* ---- a non-blocking communicator: used before it is made ---- */

static void nonblocking_body(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t c;
  cudaStream_t s = stream_new();
  config.blocking = 0;
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet();
  WANT(ncclInProgress, NULL, ncclCommInitRankConfig(&c, ranks, job->id[0], me, &config));
  fill(buff, me, 0, many), blank(result, many);
  MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s)); /* it may still be being made */
  MUST(NULL, hcclStreamSynchronize(s));
  same("all-reduce", result, -ranks, 0, many);
  CHECK(state_after(c, ncclInProgress, 5) == ncclSuccess, "%s", ncclGetLastError(c));
  WANT(ncclInProgress, c, ncclCommFinalize(c));
  CHECK(state_after(c, ncclInProgress, 5) == ncclSuccess, "%s", ncclGetLastError(c));
  MUST(c, ncclCommDestroy(c));
}

/* ---- a fork while work is queued: the parent goes on, the child is told ---- */

static void fork_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t s = stream_new(), other = s;
  fill(buff, me, 0, many);
  for (int i = 0; i < 10; i++) {
    blank(result, many);
    MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s));
    pid_t child = fork();
    if (child == 0) {
      int told = hcclStreamSynchronize(s) == ncclInvalidUsage && strstr(ncclGetLastError(NULL), "forked") != NULL;
      _exit(!(told && hcclStreamCreate(&other) == ncclInvalidUsage && other == NULL));
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child ended with %x", status);
    MUST(NULL, hcclStreamSynchronize(s));
    same("all-reduce beside a fork", result, -ranks, 0, many);
  }
  MUST(c, ncclCommDestroy(c));
}

/* ---- thousands of streams, and of waits: no thread for each ---- */

static void crowd_body(void) {
  enum { N = 3000 };
  static cudaStream_t s[N];
  static _Atomic int reached;
  ncclComm_t c = comm_new();
  cudaEvent_t e;
  struct gate gate = {0};
  MUST(NULL, hcclEventCreate(&e));
  for (int k = 0; k < N; k++) s[k] = stream_new();
  MUST(NULL, hcclStreamLaunchHostFunc(s[0], hold, &gate));
  MUST(NULL, hcclEventRecord(e, s[0]));
  NOTE("%d streams", N);
  for (int k = 1; k < N; k++) {
    MUST(NULL, hcclStreamWaitEvent(s[k], e));
    MUST(c, ncclAllReduce(buff, result, 100, ncclFloat32, ncclSum, c, s[k]));
    MUST(NULL, hcclStreamLaunchHostFunc(s[k], count_up, &reached));
  }
  CHECK(threads() < 60, "%d threads", threads());
  open_gate(&gate);
  for (int k = 0; k < N; k++) MUST(NULL, hcclStreamSynchronize(s[k]));
  CHECK(reached == N - 1, "%d of %d", reached, N - 1);
  CHECK(threads() < 60, "%d threads", threads());
  for (int k = 0; k < N; k++) MUST(NULL, hcclStreamDestroy(s[k]));
  MUST(c, ncclCommDestroy(c));
}

/* ---- made, used and destroyed over and over ---- */

static void cycle(ncclComm_t c) {
  cudaStream_t s = stream_new();
  cudaEvent_t e;
  MUST(NULL, hcclEventCreate(&e));
  for (int i = 0; i < 4; i++) MUST(c, ncclAllReduce(buff, result, 1000, ncclFloat32, ncclSum, c, s));
  MUST(NULL, hcclEventRecord(e, s));
  MUST(NULL, hcclStreamSynchronize(s));
  MUST(NULL, hcclEventDestroy(e));
  MUST(NULL, hcclStreamDestroy(s));
}
static void leak_body(void) {
  ncclComm_t c = comm_new();
  int n = times(2000, 100000), fds = 0, tasks = 0;
  long rss = 0;
  for (int i = 0; i < n; i++) {
    NOTE("cycle %d", i);
    if (i == n / 4) fds = descriptors(), tasks = threads(), rss = proc_number("/proc/self/status", "VmRSS");
    cycle(c);
  }
  CHECK(descriptors() <= fds, "%d descriptors, before %d", descriptors(), fds);
  CHECK(threads() <= tasks + 3, "%d threads, before %d", threads(), tasks); /* of Go, which come and stay */
  long grown = proc_number("/proc/self/status", "VmRSS") - rss;
  CHECK(grown < 2 << 10, "%ld KiB more", grown);
  MUST(c, ncclCommDestroy(c));
}

/* ---- a stream that waits for a late rank uses no processor ---- */

static void wait_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t s = stream_new();
  double wait = times(2, 5);
  MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s)); /* memory that is touched for the first time costs too */
  MUST(NULL, hcclStreamSynchronize(s));
  meet();
  if (me == 1) sleep_for(wait);
  double cpu = cpu_seconds();
  MUST(c, ncclAllReduce(buff, result, many, ncclFloat32, ncclSum, c, s));
  MUST(NULL, hcclStreamSynchronize(s));
  cpu = cpu_seconds() - cpu;
  CHECK(cpu < 0.1 * wait, "%.2f processor seconds for a wait of %.0f s", cpu, wait);
  MUST(c, ncclCommDestroy(c));
}

int main(int argc, char** argv) {
  static const struct { const char* name; int ranks; void (*body)(void); } all[] = {
    {"errors", 2, errors_body}, {"killed", 3, killed_body},           {"abort", 2, abort_body}, {"destroy", 2, destroy_body},
    {"fork", 2, fork_body},     {"nonblocking", 2, nonblocking_body}, {"crowd", 2, crowd_body}, {"leak", 2, leak_body},
    {"wait", 2, wait_body},     {"limit", 2, limit_body},
  };
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "limit")) setenv("HCCL_TIMEOUT", "0.5", 1);
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (!strcmp(what, all[k].name)) return job_run(all[k].ranks, times(40, 600), all[k].body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
