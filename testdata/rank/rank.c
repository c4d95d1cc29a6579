// One rank of a C program, for a test of package hccl: rank ID RANK N joins the communicator of the id, which is given in hexadecimal
// digits, and sums.
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call) do { ncclResult_t r_ = (call); \
  if (r_ != ncclSuccess) { printf("%s: %s\n", #call, ncclGetLastError(NULL)); return 1; } } while (0)

static int sum(ncclComm_t comm, size_t count, int64_t mine) {
  int64_t* x = malloc(count * sizeof *x);
  for (size_t k = 0; k < count; k++) x[k] = mine;
  MUST(ncclAllReduce(x, x, count, ncclInt64, ncclSum, comm, NULL));
  printf("%lld\n", (long long)x[count - 1]);
  free(x);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  ncclUniqueId id;
  for (size_t k = 0; k < sizeof id.internal; k++) {
    unsigned byte;
    if (sscanf(argv[1] + 2 * k, "%2x", &byte) != 1) return 2;
    id.internal[k] = (char)byte;
  }
  ncclComm_t comm;
  MUST(ncclCommInitRank(&comm, atoi(argv[3]), id, atoi(argv[2])));
  if (sum(comm, 1, atoi(argv[2])) || sum(comm, 100000, atoi(argv[2]))) return 1;
  MUST(ncclCommDestroy(comm));
  return 0;
}
