// Times collective operations of two libraries by one method. method.c measures; side_hccl.c and side_mpi.c supply the operations,
// and each is linked with method.c into a program of its own. compare.py runs both in turn and prints them side by side.
#ifndef HCCL_BENCH_H
#define HCCL_BENCH_H
#include <stddef.h>

enum { MOST_RANKS = 64, MOST_ITERATIONS = 4000 };

// What to measure: the command line behind the rank count.
struct task {
  const char* op;    // allreduce, allgather, reducescatter, broadcast, alltoall
  const char* sizes; // bytes of the larger buffer, separated by commas
  double seconds;    // for each size and figure
  int shareable;     // buffers from the library's own allocator
};

// A library's side. count is the number of floats of the larger buffer.
struct side {
  void (*run)(const char* op, const float* send, float* recv, size_t count);
  float* (*allocate)(size_t bytes);
  void (*release)(float* p);
};

// Maps the page that all ranks share (a file of zeros that compare.py has made) and pins the rank, if there are enough processors.
void method_join(const char* page, int rank, int nranks);
void method_barrier(void);
void* method_mail(void); // 128 bytes for what the sides pass between ranks before a barrier
void method_measure(const struct task* task, const struct side* side);
void method_fail(const char* what, const char* why); // does not return
#endif
