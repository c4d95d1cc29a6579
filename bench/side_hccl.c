// HCCL's side: ranks are processes that this program forks, buffers are host memory, calls are synchronous (NULL stream).
// usage: bench_hccl NRANKS PAGE OP SIZES SECONDS [shareable]
#define _GNU_SOURCE
#include "bench.h"
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static ncclComm_t comm;
static size_t ranks;

static void must(ncclResult_t r, const char* what) {
  if (r != ncclSuccess) method_fail(what, ncclGetLastError(comm));
}

static void run(const char* op, const float* send, float* recv, size_t count) {
  size_t part = count / ranks;
  if (strcmp(op, "allreduce") == 0) must(ncclAllReduce(send, recv, count, ncclFloat, ncclSum, comm, NULL), op);
  else if (strcmp(op, "allgather") == 0) must(ncclAllGather(send, recv, part, ncclFloat, comm, NULL), op);
  else if (strcmp(op, "reducescatter") == 0) must(ncclReduceScatter(send, recv, part, ncclFloat, ncclSum, comm, NULL), op);
  else if (strcmp(op, "broadcast") == 0) must(ncclBroadcast(recv, recv, count, ncclFloat, 0, comm, NULL), op);
  else if (strcmp(op, "alltoall") == 0) must(ncclAlltoAll(send, recv, part, ncclFloat, comm, NULL), op);
  else method_fail(op, "no such operation");
}

static float* plain(size_t bytes) {
  void* p = NULL;
  if (posix_memalign(&p, 64, bytes) != 0) method_fail("buffer", "out of memory");
  return p;
}
static void plain_free(float* p) { free(p); }

static float* shareable(size_t bytes) {
  void* p = NULL;
  must(ncclMemAlloc(&p, bytes), "ncclMemAlloc");
  return p;
}
static void shareable_free(float* p) { must(ncclMemFree(p), "ncclMemFree"); }

static void rank_main(int rank, char** argv, int own) {
  struct task task = {argv[3], argv[4], atof(argv[5]), own};
  struct side side = {run, own ? shareable : plain, own ? shareable_free : plain_free};
  method_join(argv[2], rank, (int)ranks);
  if (rank == 0) must(ncclGetUniqueId(method_mail()), "ncclGetUniqueId");
  method_barrier();
  ncclUniqueId id;
  memcpy(&id, method_mail(), sizeof id);
  must(ncclCommInitRank(&comm, (int)ranks, id, rank), "ncclCommInitRank");
  method_measure(&task, &side);
  must(ncclCommDestroy(comm), "ncclCommDestroy");
}

int main(int argc, char** argv) {
  if (argc < 6 || (ranks = (size_t)atoi(argv[1])) < 1 || ranks > MOST_RANKS) {
    fprintf(stderr, "usage: bench_hccl NRANKS PAGE OP SIZES SECONDS [shareable]\n");
    return 2;
  }
  pid_t pids[MOST_RANKS];
  for (int r = 0; r < (int)ranks; r++) {
    pids[r] = fork();
    if (pids[r] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); // a rank that waits at a barrier must not outlive a bench that was stopped
      rank_main(r, argv, argc > 6);
      return 0;
    }
  }
  int failed = 0, status;
  for (size_t k = 0; k < ranks; k++) {
    pid_t ended = wait(&status);
    for (size_t r = 0; r < ranks; r++) {
      if (pids[r] == ended) pids[r] = 0; // its number may be somebody else's from now on
      else if (status != 0 && !failed && pids[r] > 0) kill(pids[r], SIGKILL);
    }
    failed |= status != 0;
  }
  return failed;
}
