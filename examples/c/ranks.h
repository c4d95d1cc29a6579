/* What the examples share: ranks as forked processes, and a check of each call. An id may reach the ranks in any way; here it is
 * inherited. The parent makes no communicator, because one does not survive a fork. */
#ifndef EXAMPLES_RANKS_H_
#define EXAMPLES_RANKS_H_

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every call answers; the sentence for what went wrong belongs to the thread and to the communicator. */
#define MUST(call)                                                                          \
  do {                                                                                      \
    ncclResult_t r_ = (call);                                                               \
    if (r_ != ncclSuccess) {                                                                \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, ncclGetLastError(NULL)); \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

static inline void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

/* Runs body(rank, n, id) in n processes; the exit status for main. */
static inline int run_ranks(int n, void (*body)(int rank, int n, ncclUniqueId id)) {
  ncclUniqueId id;
  MUST(ncclGetUniqueId(&id));
  int started = 0, bad = 0, status;
  for (int rank = 0; rank < n; rank++) {
    pid_t pid = fork();
    if (pid == 0) {
      body(rank, n, id);
      exit(0);
    }
    started += pid > 0;
  }
  while (wait(&status) > 0) bad |= status != 0;
  return bad || started != n;
}

#endif
