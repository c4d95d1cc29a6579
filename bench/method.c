// The method, the same for both libraries:
//
//   latency       every rank starts behind a barrier; an iteration takes as long as its slowest rank; p50 and p99 of all iterations
//   back to back  a run of calls without barriers between them; mean per call of the slowest rank
//   line          one-way time of a cache line between the first two ranks, before and behind the figures of a size
//
// The line tells which phase a virtual machine is in: near (some 55 ns) or far (some 270 ns), with every latency in proportion. The
// machine changes between them within seconds, so that figures may be compared within one phase only.
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct page {
  _Alignas(128) _Atomic int arrived; // ranks at the barrier
  _Alignas(128) _Atomic int passed;  // barriers that all have left
  _Alignas(128) _Atomic uint64_t ball;
  _Alignas(128) int iterations; // rank 0's choice
  _Alignas(128) char mail[128];
  double took[MOST_RANKS][MOST_ITERATIONS]; // seconds; a row has one writer
};

static struct page* page;
static int me, n, crowded;

void method_fail(const char* what, const char* why) {
  fprintf(stderr, "bench: rank %d: %s: %s\n", me, what, why);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pin(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(me, &set);
  sched_setaffinity(0, sizeof set, &set); // where that is refused the figures are a little worse, for both sides
}

void method_join(const char* path, int rank, int nranks) {
  me = rank;
  n = nranks;
  crowded = nranks > sysconf(_SC_NPROCESSORS_ONLN);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof *page) != 0) method_fail(path, strerror(errno));
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (page == MAP_FAILED) method_fail(path, strerror(errno));
  close(fd);
  if (!crowded) pin();
}

void* method_mail(void) { return page->mail; }

void method_barrier(void) {
  int turn = atomic_load_explicit(&page->passed, memory_order_acquire);
  if (atomic_fetch_add(&page->arrived, 1) + 1 == n) {
    atomic_store(&page->arrived, 0);
    atomic_store_explicit(&page->passed, turn + 1, memory_order_release);
    return;
  }
  while (atomic_load_explicit(&page->passed, memory_order_acquire) == turn)
    if (crowded) sched_yield();
}

// The ball goes from rank 0 to rank 1 and back. 0 where ranks share processors: it has no meaning there.
static double line_ns(void) {
  enum { ROUNDS = 2000 };
  if (n < 2 || crowded) return 0;
  if (me == 0) atomic_store(&page->ball, 0);
  method_barrier();
  double from = now();
  for (uint64_t k = 0; me < 2 && k < ROUNDS; k++) {
    while (atomic_load_explicit(&page->ball, memory_order_acquire) != 2 * k + (uint64_t)me) {}
    atomic_store_explicit(&page->ball, 2 * k + (uint64_t)me + 1, memory_order_release);
  }
  double ns = (now() - from) / (2 * ROUNDS) * 1e9;
  method_barrier();
  return ns;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// The slowest rank of each iteration, in ascending order; rank 0 only.
static double* slowest(int iterations) {
  static double most[MOST_ITERATIONS];
  for (int k = 0; k < iterations; k++) {
    most[k] = 0;
    for (int r = 0; r < n; r++)
      if (page->took[r][k] > most[k]) most[k] = page->took[r][k];
  }
  qsort(most, (size_t)iterations, sizeof *most, ascending);
  return most;
}

struct job {
  const struct side* side;
  const char* op;
  float *send, *recv;
  size_t count;
};

static void run(const struct job* j) { j->side->run(j->op, j->send, j->recv, j->count); }

// Every rank adds rank+1 to all elements: a library that drops a contribution is not fast but wrong.
static void check(const struct job* j) {
  if (strcmp(j->op, "allreduce") != 0) return;
  float want = (float)n * (float)(n + 1) / 2;
  for (size_t k = 0; k < j->count; k++)
    if (j->recv[k] != want) method_fail(j->op, "a wrong sum");
}

// Rank 0 chooses how many iterations fill the time; all do as many.
static int choose_iterations(const struct job* j, double seconds) {
  for (int k = 0; k < 3; k++) run(j);
  method_barrier();
  double from = now();
  for (int k = 0; k < 3; k++) run(j);
  double each = (now() - from) / 3;
  if (me == 0) {
    double fit = seconds / (each > 1e-7 ? each : 1e-7);
    page->iterations = fit < 7 ? 7 : fit > MOST_ITERATIONS ? MOST_ITERATIONS : (int)fit;
  }
  method_barrier();
  return page->iterations;
}

static void time_each(const struct job* j, int iterations) {
  for (int k = -iterations / 10 - 1; k < iterations; k++) {
    method_barrier();
    double from = now();
    run(j);
    double took = now() - from;
    if (k >= 0) page->took[me][k] = took;
  }
  method_barrier();
}

static double time_back_to_back(const struct job* j, int iterations) {
  method_barrier();
  double from = now();
  for (int k = 0; k < iterations; k++) run(j);
  page->took[me][0] = (now() - from) / iterations;
  method_barrier();
  double most = me == 0 ? slowest(1)[0] : 0;
  method_barrier();
  return most;
}

static void measure_size(const struct task* task, const struct side* side, size_t bytes) {
  size_t count = bytes / sizeof(float);
  struct job j = {side, task->op, side->allocate(bytes), side->allocate(bytes), count};
  for (size_t k = 0; k < count; k++) j.send[k] = (float)(me + 1), j.recv[k] = 0;
  int iterations = choose_iterations(&j, task->seconds);
  double before = line_ns();
  time_each(&j, iterations);
  double p50 = 0, p99 = 0;
  if (me == 0) {
    double* sorted = slowest(iterations);
    p50 = sorted[iterations / 2];
    p99 = sorted[iterations * 99 / 100];
  }
  method_barrier();
  check(&j);
  double mean = time_back_to_back(&j, iterations);
  double after = line_ns();
  if (me == 0) {
    printf("{\"bytes\": %zu, \"p50\": %.3f, \"p99\": %.3f, \"mean\": %.3f, \"iterations\": %d, \"line\": [%.0f, %.0f]}\n", bytes,
           p50 * 1e6, p99 * 1e6, mean * 1e6, iterations, before, after);
    fflush(stdout);
  }
  side->release(j.send);
  side->release(j.recv);
}

void method_measure(const struct task* task, const struct side* side) {
  for (const char* at = task->sizes; *at != 0;) {
    char* end;
    unsigned long long bytes = strtoull(at, &end, 10);
    if (end == at || bytes < 4) method_fail(task->sizes, "want sizes of at least 4 bytes, separated by commas");
    measure_size(task, side, (size_t)bytes);
    at = *end == ',' ? end + 1 : end;
  }
}
