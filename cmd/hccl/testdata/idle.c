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
CALL(ncclGather, int root,)
CALL(ncclScatter, int root,)

ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }
ncclResult_t ncclSend(const void* s, size_t n, ncclDataType_t t, int peer, ncclComm_t comm, cudaStream_t x) {
  (void)s; (void)n; (void)t; (void)peer; (void)x;
  return result(comm);
}
ncclResult_t ncclRecv(void* d, size_t n, ncclDataType_t t, int peer, ncclComm_t comm, cudaStream_t x) {
  (void)d; (void)n; (void)t; (void)peer; (void)x;
  return result(comm);
}

#ifndef OLD // has no hccl names
#define CALL_V(name, ...) ncclResult_t name(const void* s, __VA_ARGS__ ncclDataType_t t, V_RED ncclComm_t comm, cudaStream_t x) \
  { (void)s; (void)t; (void)x; return result(comm); }
#define LISTS const uint64_t *c, const uint64_t *e
#define V_RED
CALL_V(hcclAllGatherV, void* d, LISTS,)
CALL_V(hcclAlltoAllV, LISTS, void* d, const uint64_t *c2, const uint64_t *e2,)
#undef V_RED
#define V_RED ncclRedOp_t red,
CALL_V(hcclReduceScatterV, void* d, LISTS,)
#endif
