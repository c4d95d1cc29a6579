/* What the programs of this folder share. Each is compiled as C11 and as C++17, linked with -lnccl, and run beside a core of their
   own (fake_core.c), which records what the shim asks of it. A program prints a line for each fault and ends with status 1. */
#ifndef ABI_TEST_H
#define ABI_TEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <nccl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_core.h"

static int faults;
#define CHECK(cond, ...) \
  do { \
    if (!(cond)) { \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #cond); \
      printf(__VA_ARGS__); \
      printf("\n"); \
      if (++faults > 20) exit(1); /* one fault in a loop need not fill the screen */ \
    } \
  } while (0)
#define WANT(result, call) \
  do { \
    int got_ = (int)(call); \
    CHECK(got_ == (int)(result), "%s gave %d (%s)", #call, got_, ncclGetLastError(NULL)); \
  } while (0)
#define MUST(call) WANT(ncclSuccess, call)

/* The call is refused, and the text holds the word. */
#define REFUSED(word, comm, call) \
  do { \
    WANT(ncclInvalidArgument, call); \
    CHECK(strcasestr(ncclGetLastError(comm), word) != NULL, "%s: \"%s\" lacks %s", #call, ncclGetLastError(comm), word); \
  } while (0)

/* The fake core's state, once the library has opened it. */
static struct fake* fake(void) {
  typedef struct fake* (*get_t)(void);
  Dl_info info;
  char path[4096];
  union { void* p; get_t f; } get;
  if (dladdr((void*)(size_t)ncclGetVersion, &info) == 0) return NULL;
  snprintf(path, sizeof path, "%.*s/libhccl_core.so", (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
  void* core = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  get.p = core != NULL ? dlsym(core, "hccl_fake") : NULL;
  return get.p != NULL ? get.f() : NULL;
}

/* A communicator of n ranks of which we are one. */
static ncclComm_t make(int n, int rank) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  MUST(ncclGetUniqueId(&id));
  MUST(ncclCommInitRank(&comm, n, id, rank));
  return comm;
}

/* A copy of a struct that ends at a page which cannot be read: whoever looks past size dies. */
static void* at_page_end(const void* p, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* m = (char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(m + page, page, PROT_NONE);
  memcpy(m + page - size, p, size);
  return m + page - size;
}
static void page_free(void* p) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap((void*)((size_t)p & ~(page - 1)), 2 * page);
}

/* Silences warnings where a program needs only some of the above. */
static inline int test_end(void) {
  (void)make, (void)at_page_end, (void)page_free, (void)fake;
  return faults != 0;
}
#endif
