/* Forks before and after the core was opened. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs f in a child and returns 0 if it found no fault in time. */
static int in_child(int (*f)(void)) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    faults = 0;
    alarm(5);
    int bad = f();
    fflush(stdout);
    _exit(bad || faults);
  }
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

static int use(void) {
  ncclComm_t comm = make(1, 0);
  float x = 1, y = 0;
  MUST(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, comm, NULL));
  MUST(ncclCommDestroy(comm));
  return 0;
}

static ncclComm_t parents;
static int kept_fd, free_fd;

#define DEAD(call) \
  do { \
    double t_ = now(); \
    int e_ = (int)(call); \
    const char* why_ = ncclGetLastError(NULL); \
    CHECK(e_ != ncclSuccess && strstr(why_, "forked") != NULL, "%s gave %d (%s)", #call, e_, why_); \
    CHECK(now() - t_ < 1, "%s took %.1f s", #call, now() - t_); \
  } while (0)

static int use_after(void) {
  static int depth;
  float x = 1, y = 0;
  int v;
  void* p;
  ncclUniqueId id;
  ncclComm_t comm, all[2];
  ncclResult_t state;
  memset(&id, 0, sizeof id);
  CHECK(fcntl(kept_fd, F_GETFD) == -1, "a descriptor of the core is open in the child");
  CHECK(fcntl(free_fd, F_GETFD) != -1, "a descriptor that the core gave back was closed");
  MUST(ncclGetVersion(&v));
  CHECK(v == NCCL_VERSION_CODE, "%d", v);
  DEAD(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, parents, NULL));
  DEAD(ncclSend(&x, 1, ncclFloat, 0, parents, NULL));
  DEAD(ncclGetUniqueId(&id));
  DEAD(ncclCommInitRank(&comm, 1, id, 0));
  DEAD(ncclCommInitAll(all, 2, NULL));
  DEAD(ncclCommSplit(parents, 0, 0, &comm, NULL));
  DEAD(ncclCommGetAsyncError(parents, &state));
  DEAD(ncclCommDestroy(parents));
  DEAD(ncclCommAbort(parents));
  DEAD(ncclCommFinalize(parents));
  DEAD(ncclMemAlloc(&p, 8));
  DEAD(ncclGroupEnd());
  MUST(ncclGroupStart());
  DEAD(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, parents, NULL));
  DEAD(ncclGroupEnd());
  if (depth++ == 0) CHECK(in_child(use_after) == 0, "the child's child");
  return 0;
}

int main(void) {
  int v;
  MUST(ncclGetVersion(&v));
  for (int k = 0; k < 3; k++) CHECK(in_child(use) == 0, "a child forked before the first use");
  CHECK(fake() == NULL, "the parent has opened the core");
  parents = make(1, 0);
  int ends[2];
  if (pipe(ends) != 0) return 2;
  kept_fd = ends[0], free_fd = ends[1];
  fake()->services->fd_opened(kept_fd);
  fake()->services->fd_opened(free_fd);
  fake()->services->fd_closed(free_fd);
  fake()->services->fd_opened(1 << 24); /* more than the table holds: not closed, but no harm */
  CHECK(in_child(use_after) == 0, "a child forked after the first use");
  CHECK(fcntl(kept_fd, F_GETFD) != -1, "the parent's descriptor is gone");
  CHECK(use() == 0 && !faults, "the parent after forks");
  return test_end();
}
