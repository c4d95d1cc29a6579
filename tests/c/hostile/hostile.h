/* What the programs of this folder share. A program is linked with the built library; its first argument chooses the case. It
   prints a line for each fault and ends with status 1. Each case runs in a process of its own. */
#ifndef HOSTILE_H
#define HOSTILE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <nccl.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int faults;
#define CHECK(cond, ...) \
  do { \
    if (!(cond)) { \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #cond); \
      printf(__VA_ARGS__); \
      printf(" (%s)\n", ncclGetLastError(NULL)); \
      __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED); \
    } \
  } while (0)
#define WANT(result, call) \
  do { \
    int got_ = (int)(call); \
    CHECK(got_ == (int)(result), "%s gave %d", #call, got_); \
  } while (0)
#define MUST(call) WANT(ncclSuccess, call)

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* settled waits until a communicator is no longer in progress, and returns its state. */
static inline ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    MUST(ncclCommGetAsyncError(comm, &state));
    sched_yield();
  }
  return state;
}

struct test {
  const char* name;
  void (*run)(void);
};

static inline int choose(int argc, char** argv, const struct test* tests, size_t n) {
  for (size_t k = 0; argc == 2 && k < n; k++)
    if (strcmp(argv[1], tests[k].name) == 0) return tests[k].run(), faults != 0;
  printf("usage: %s CASE\n", argv[0]);
  return 2;
}
#endif
