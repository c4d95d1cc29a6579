/* All-reduce: each of four ranks has a vector, and all get the sum, then the mean in place. */
#include "ranks.h"

enum { COUNT = 1 << 20 };

static void body(int rank, int n, ncclUniqueId id) {
  ncclComm_t comm;
  MUST(ncclCommInitRank(&comm, n, id, rank));

  /* Memory of ncclMemAlloc is read in place by the ranks of one host; any other memory works as well. */
  float *mine, *sum;
  MUST(ncclMemAlloc((void**)&mine, COUNT * sizeof *mine));
  MUST(ncclMemAlloc((void**)&sum, COUNT * sizeof *sum));
  for (size_t k = 0; k < COUNT; k++) mine[k] = (float)(rank + 1) * (float)(k % 100);

  /* On host memory the stream is NULL, and the call returns when the result is there. */
  MUST(ncclAllReduce(mine, sum, COUNT, ncclFloat, ncclSum, comm, NULL));
  MUST(ncclAllReduce(mine, mine, COUNT, ncclFloat, ncclAvg, comm, NULL));

  int ranks = n * (n + 1) / 2; /* 1 + 2 + ... + n */
  for (size_t k = 0; k < COUNT; k++) {
    check(sum[k] == (float)ranks * (float)(k % 100), "the sum");
    check(mine[k] == (float)ranks * (float)(k % 100) / (float)n, "the mean");
  }
  printf("all_reduce: rank %d of %d has the sum and the mean of %d numbers\n", rank, n, COUNT);
  MUST(ncclMemFree(mine));
  MUST(ncclMemFree(sum));
  MUST(ncclCommDestroy(comm));
}

int main(void) { return run_ranks(4, body); }
