// A library with the names that the tool needs, whose calls succeed and move nothing; with FAIL_RANK, one rank's calls fail.
#include <nccl.h>
#include <stdint.h>

#ifndef FAIL_RANK
#define FAIL_RANK (-1)
#endif

static ncclResult_t result(ncclComm_t comm) { return (intptr_t)comm == FAIL_RANK + 1 ? ncclInternalError : ncclSuccess; }

ncclResult_t ncclGetVersion(int* version) { *version = 23203; return ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { id->internal[0] = 1; return ncclSuccess; }
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
  (void)nranks;
  *comm = (ncclComm_t)(intptr_t)(rank + 1);
  return id.internal[0] == 1 ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { (void)comm; return ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t r) { (void)r; return "error"; }
const char* ncclGetLastError(ncclComm_t comm) { (void)comm; return "it broke"; }

#define CALL(name, ...) ncclResult_t name(const void* s, void* d, size_t n, ncclDataType_t t, __VA_ARGS__ ncclComm_t comm, cudaStream_t x) \
  { (void)s; (void)d; (void)n; (void)t; (void)x; return result(comm); }
CALL(ncclAllReduce, ncclRedOp_t op,)
CALL(ncclReduce, ncclRedOp_t op, int root,)
CALL(ncclBroadcast, int root,)
CALL(ncclAllGather, )
CALL(ncclReduceScatter, ncclRedOp_t op,)
CALL(ncclAlltoAll, )
