// An all-reduce on a stream beside a computation of equal length, in ranks that are processes of this program.
// usage: overlap RANKS BYTES ROUNDS
//
// A round does each of the things once, behind barriers. A figure is the lower quartile over the rounds of the slowest rank:
// other work on the machine disturbs some rounds, and all four things alike. Processor seconds are those of all ranks together, also
// their quartile. The computation stays in registers: it takes processor time and no memory bandwidth. "parts" is how many of 8
// all-reduces of an eighth each are done when the computation beside them ends, on the rank that has fewest, as the rounds' median:
// communication that waits for the program to call it again has none. Prints one line of JSON.
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

enum { MOST_RANKS = 64, MOST_ROUNDS = 1000, PARTS = 8 };

enum thing { ON_NULL, ON_STREAM, COMPUTATION, TOGETHER, IN_PARTS, THINGS };

struct row { double seconds, cpu, reached, parts; };
static struct page {
  ncclUniqueId id;
  _Atomic int arrived, passed;
  _Atomic long steps; // of the computation, rank 0's choice
  struct row rows[THINGS][MOST_ROUNDS][MOST_RANKS];
} * page;
static int me, ranks, rounds;
static ncclComm_t comm;
static cudaStream_t stream;
static cudaEvent_t begun, ended, part[PARTS];
static int parts_done;
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

static void in_parts(void) {
  size_t n = count / PARTS;
  for (int k = 0; k < PARTS; k++) {
    must(ncclAllReduce(buff + (size_t)k * n, result + (size_t)k * n, n, ncclFloat, ncclSum, comm, stream), "all-reduce");
    must(hcclEventRecord(part[k], stream), "record");
  }
  compute(page->steps);
  for (parts_done = 0; parts_done < PARTS && hcclEventQuery(part[parts_done]) == ncclSuccess;) parts_done++;
  must(hcclStreamSynchronize(stream), "synchronize");
}

static void once(enum thing what) {
  if (what == IN_PARTS) in_parts();
  if (what == ON_NULL) reduce(NULL);
  if (what == COMPUTATION) compute(page->steps);
  if (what != ON_STREAM && what != TOGETHER) return;
  must(hcclEventRecord(begun, stream), "record");
  reduce(stream);
  must(hcclEventRecord(ended, stream), "record");
  if (what == TOGETHER) compute(page->steps);
  must(hcclStreamSynchronize(stream), "synchronize");
}

static void measure(enum thing what, int round) {
  float ms = 0;
  barrier();
  double from = now(), before = cpu();
  once(what);
  struct row* r = &page->rows[what][round][me];
  r->seconds = now() - from;
  r->cpu = cpu() - before;
  if (what == ON_STREAM || what == TOGETHER) must(hcclEventElapsedTime(&ms, begun, ended), "elapsed");
  r->reached = ms * 1e-3;
  r->parts = parts_done;
  barrier();
}

static int less(const void* a, const void* b) { return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b); }
static double ranked(double* values, int at) {
  qsort(values, (size_t)rounds, sizeof *values, less);
  return values[at];
}
static struct row figure(enum thing what) {
  static double seconds[MOST_ROUNDS], used[MOST_ROUNDS], reached[MOST_ROUNDS], parts[MOST_ROUNDS];
  for (int k = 0; k < rounds; k++) {
    seconds[k] = used[k] = reached[k] = 0, parts[k] = PARTS;
    for (int r = 0; r < ranks; r++) {
      const struct row* row = &page->rows[what][k][r];
      if (row->seconds > seconds[k]) seconds[k] = row->seconds;
      if (row->reached > reached[k]) reached[k] = row->reached;
      if (row->parts < parts[k]) parts[k] = row->parts;
      used[k] += row->cpu;
    }
  }
  int low = rounds / 4;
  return (struct row){ranked(seconds, low), ranked(used, low), ranked(reached, low), ranked(parts, rounds / 2)};
}

// calibrate makes the computation as long as the all-reduce, all ranks computing.
static void calibrate(void) {
  page->steps = 1000000;
  for (int k = 0; k < rounds; k++) measure(ON_STREAM, k);
  for (int k = 0; k < rounds; k++) measure(COMPUTATION, k);
  if (me == 0) page->steps = (long)(1e6 * figure(ON_STREAM).seconds / figure(COMPUTATION).seconds);
  barrier();
}

static void rank(void) {
  if (me == 0) must(ncclGetUniqueId(&page->id), "id");
  barrier();
  must(ncclCommInitRank(&comm, ranks, page->id, me), "init");
  must(hcclStreamCreate(&stream), "stream");
  must(hcclEventCreate(&begun), "event");
  must(hcclEventCreate(&ended), "event");
  for (int k = 0; k < PARTS; k++) must(hcclEventCreate(&part[k]), "event");
  buff = calloc(count, sizeof *buff), result = malloc(count * sizeof *result);
  if (buff == NULL || result == NULL) exit(1);
  calibrate();
  for (int k = 0; k < rounds; k++)
    for (enum thing what = 0; what < THINGS; what++) measure(what, k);
  struct row null = figure(ON_NULL), alone = figure(ON_STREAM), work = figure(COMPUTATION), both = figure(TOGETHER);
  if (me == 0)
    printf("{\"ranks\": %d, \"bytes\": %zu, \"null\": %.6f, \"stream\": %.6f, \"stream_cpu\": %.6f, \"work\": %.6f, \"work_cpu\": %.6f, "
           "\"both\": %.6f, \"both_cpu\": %.6f, \"reached\": %.6f, \"parts\": %.0f}\n", ranks, count * sizeof *buff, null.seconds,
           alone.seconds, alone.cpu, work.seconds, work.cpu, both.seconds, both.cpu, both.reached, figure(IN_PARTS).parts);
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
