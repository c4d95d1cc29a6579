/* A pipeline of send and receive: blocks of work pass from rank to rank, and each rank adds its part.
 *
 *     rank 0 ──block──> rank 1 ──block──> rank 2 ──block──> rank 3
 *
 * While a rank works on block b it already receives block b+1: both calls stand in one group, which is done as one thing. */
#include "ranks.h"

enum { BLOCKS = 8, COUNT = 50000 };

static void work(int* block, int rank) {
  for (int k = 0; k < COUNT; k++) block[k] = block[k] * 2 + rank;
}

/* What block b is after ranks 0 to last. */
static int expected(int b, int last) {
  int value = b;
  for (int rank = 0; rank <= last; rank++) value = value * 2 + rank;
  return value;
}

static void body(int rank, int n, ncclUniqueId id) {
  static int blocks[2][COUNT]; /* one is worked on and sent, the other is received into */
  ncclComm_t comm;
  MUST(ncclCommInitRank(&comm, n, id, rank));
  if (rank > 0) MUST(ncclRecv(blocks[0], COUNT, ncclInt32, rank - 1, comm, NULL));
  for (int b = 0; b < BLOCKS; b++) {
    int *now = blocks[b % 2], *next = blocks[(b + 1) % 2];
    if (rank == 0)
      for (int k = 0; k < COUNT; k++) now[k] = b;
    work(now, rank);
    for (int k = 0; k < COUNT; k++) check(now[k] == expected(b, rank), "a block");
    MUST(ncclGroupStart());
    if (rank + 1 < n) MUST(ncclSend(now, COUNT, ncclInt32, rank + 1, comm, NULL));
    if (rank > 0 && b + 1 < BLOCKS) MUST(ncclRecv(next, COUNT, ncclInt32, rank - 1, comm, NULL));
    MUST(ncclGroupEnd());
  }
  if (rank == n - 1) printf("pipeline: %d blocks went through %d ranks\n", BLOCKS, n);
  MUST(ncclCommDestroy(comm));
}

int main(void) { return run_ranks(4, body); }
