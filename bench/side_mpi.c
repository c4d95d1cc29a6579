// MPI's side: mpirun starts the ranks.
// usage: mpirun ... bench_mpi NRANKS PAGE OP SIZES SECONDS
#define _GNU_SOURCE
#include "bench.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ranks;

static void run(const char* op, const float* send, float* recv, size_t count) {
  int all = (int)count, part = all / ranks;
  MPI_Comm w = MPI_COMM_WORLD;
  if (strcmp(op, "allreduce") == 0) MPI_Allreduce(send, recv, all, MPI_FLOAT, MPI_SUM, w);
  else if (strcmp(op, "allgather") == 0) MPI_Allgather(send, part, MPI_FLOAT, recv, part, MPI_FLOAT, w);
  else if (strcmp(op, "reducescatter") == 0) MPI_Reduce_scatter_block(send, recv, part, MPI_FLOAT, MPI_SUM, w);
  else if (strcmp(op, "broadcast") == 0) MPI_Bcast(recv, all, MPI_FLOAT, 0, w);
  else if (strcmp(op, "alltoall") == 0) MPI_Alltoall(send, part, MPI_FLOAT, recv, part, MPI_FLOAT, w);
  else method_fail(op, "no such operation");
}

static float* allocate(size_t bytes) {
  void* p = NULL;
  if (posix_memalign(&p, 64, bytes) != 0) method_fail("buffer", "out of memory");
  return p;
}
static void release(float* p) { free(p); }

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 6 || ranks != atoi(argv[1])) {
    fprintf(stderr, "usage: mpirun -np NRANKS bench_mpi NRANKS PAGE OP SIZES SECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  struct task task = {argv[3], argv[4], atof(argv[5]), 0};
  struct side side = {run, allocate, release};
  method_join(argv[2], rank, ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  method_measure(&task, &side);
  MPI_Finalize();
  return 0;
}
