// An all-reduce on a stream beside a computation of equal length, in ranks that are processes of this program.
// usage: overlap RANKS BYTES ROUNDS
//
// Each figure is the median over the rounds of the slowest rank, behind a barrier; processor seconds are those of all ranks together.
// The computation stays in registers: it takes processor time and no memory bandwidth. Prints one line of JSON.
#define _GNU_SOURCE
#include <nccl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 64, MOST_ROUNDS = 1000 };

static struct page {
  ncclUniqueId id;
  _Atomic int arrived, passed;
  _Atomic long steps; // of the computation, rank 0's choice
  double took[MOST_ROUNDS][MOST_RANKS], cpu[MOST_RANKS], reached[MOST_ROUNDS][MOST_RANKS];
} * page;
static int me, ranks, rounds;
static ncclComm_t comm;
static cudaStream_t stream;
static cudaEvent_t begun, ended;
static float *buff, *result;
static size_t count;
static volatile double sink;

static void must(ncclResult_t r, const char* what) {
  if (r == ncclSuccess) return;
  fprintf(stderr, "overlap: rank %d: %s: %s\n", me, what, ncclGetLastError(comm));
  exit(1);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
static void barrier(void) {
  int turn = page->passed;
  if (atomic_fetch_add(&page->arrived, 1) == ranks - 1) {
    page->arrived = 0;
    page->passed++;
  }
  while (page->passed == turn) sched_yield();
}

static void compute(long steps) {
  double a = 1, b = 2, c = 3, d = 4;
  for (long k = 0; k < steps; k++) a = a * 0.9 + 1, b = b * 0.8 + 1, c = c * 0.7 + 1, d = d * 0.6 + 1;
  sink = a + b + c + d;
}
static void reduce(cudaStream_t s) { must(ncclAllReduce(buff, result, count, ncclFloat, ncclSum, comm, s), "all-reduce"); }

enum { ON_NULL, ON_STREAM, COMPUTATION, TOGETHER };
static void once(int what) {
  if (what == ON_NULL) reduce(NULL);
  if (what == COMPUTATION) compute(page->steps);
  if (what != ON_STREAM && what != TOGETHER) return;
  must(hcclEventRecord(begun, stream), "record");
  reduce(stream);
  must(hcclEventRecord(ended, stream), "record");
  if (what == TOGETHER) compute(page->steps);
  must(hcclStreamSynchronize(stream), "synchronize");
}

static int less(const void* a, const void* b) { return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b); }
static double median(double rows[][MOST_RANKS]) {
  double worst[MOST_ROUNDS];
  for (int k = 0; k < rounds; k++) {
    worst[k] = 0;
    for (int r = 0; r < ranks; r++) worst[k] = rows[k][r] > worst[k] ? rows[k][r] : worst[k];
  }
  qsort(worst, (size_t)rounds, sizeof *worst, less);
  return worst[rounds / 2];
}

struct figure { double seconds, cpu, reached; };
static struct figure measure(int what) {
  struct figure f = {0};
  once(what), once(what);
  barrier();
  double used = 0;
  for (int k = 0; k < rounds; k++) {
    float ms = 0;
    barrier();
    double from = now(), before = cpu();
    once(what);
    page->took[k][me] = now() - from;
    used += cpu() - before;
    if (what == ON_STREAM || what == TOGETHER) must(hcclEventElapsedTime(&ms, begun, ended), "elapsed");
    page->reached[k][me] = ms * 1e-3;
  }
  page->cpu[me] = used / rounds;
  barrier();
  f.seconds = median(page->took), f.reached = median(page->reached);
  for (int r = 0; r < ranks; r++) f.cpu += page->cpu[r];
  barrier();
  return f;
}

static void rank(void) {
  if (me == 0) must(ncclGetUniqueId(&page->id), "id");
  barrier();
  must(ncclCommInitRank(&comm, ranks, page->id, me), "init");
  must(hcclStreamCreate(&stream), "stream");
  must(hcclEventCreate(&begun), "event");
  must(hcclEventCreate(&ended), "event");
  buff = calloc(count, sizeof *buff), result = malloc(count * sizeof *result);
  if (buff == NULL || result == NULL) exit(1);
  struct figure null = measure(ON_NULL), alone = measure(ON_STREAM);
  for (int k = 0; k < 2; k++) { // the computation is made as long as the all-reduce, all ranks computing
    if (me == 0) page->steps = k == 0 ? 1000000 : (long)((double)page->steps * alone.seconds / median(page->took));
    barrier();
    measure(COMPUTATION);
  }
  struct figure work = measure(COMPUTATION), both = measure(TOGETHER);
  if (me == 0)
    printf("{\"ranks\": %d, \"bytes\": %zu, \"null\": %.6f, \"stream\": %.6f, \"stream_cpu\": %.6f, \"work\": %.6f, \"work_cpu\": %.6f, "
           "\"both\": %.6f, \"both_cpu\": %.6f, \"reached\": %.6f}\n", ranks, count * sizeof *buff, null.seconds, alone.seconds,
           alone.cpu, work.seconds, work.cpu, both.seconds, both.cpu, both.reached);
  fflush(stdout);
  must(ncclCommDestroy(comm), "destroy");
}

int main(int argc, char** argv) {
  ranks = argc > 3 ? atoi(argv[1]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
  if (ranks < 1 || ranks > MOST_RANKS || rounds < 1 || rounds > MOST_ROUNDS) {
    fprintf(stderr, "usage: overlap RANKS BYTES ROUNDS\n");
    return 2;
  }
  count = strtoul(argv[2], NULL, 10) / sizeof *buff;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  for (me = 0; me < ranks; me++)
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      rank();
      return 0;
    }
  int status, bad = 0;
  for (int r = 0; r < ranks && !bad; r++) bad = wait(&status) < 0 || status != 0;
  if (bad) kill(0, SIGTERM); // the others would wait for the one that failed
  return bad;
}
