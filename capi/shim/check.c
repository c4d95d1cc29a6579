#include "check.h"
#include "error.h"

size_t hccl_type_size(int type) {
  static const unsigned char sizes[ncclNumTypes] = {
    [ncclInt8] = 1,    [ncclUint8] = 1,   [ncclInt32] = 4,   [ncclUint32] = 4,   [ncclInt64] = 8,      [ncclUint64] = 8,
    [ncclFloat16] = 2, [ncclFloat32] = 4, [ncclFloat64] = 8, [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1};
  return type >= 0 && type < ncclNumTypes ? sizes[type] : 0;
}

ncclResult_t hccl_check_type(ncclComm_t comm, const char* who, int type) {
  if (hccl_type_size(type) != 0) return ncclSuccess;
  return hccl_fail(comm, ncclInvalidArgument, "%s: type %d is no ncclDataType_t (0 to %d)", who, type, ncclNumTypes - 1);
}

ncclResult_t hccl_check_rank(ncclComm_t comm, const char* who, const char* what, int rank, int nranks) {
  if (rank >= 0 && (nranks == 0 || rank < nranks)) return ncclSuccess;
  if (nranks == 0) return hccl_fail(comm, ncclInvalidArgument, "%s: %s %d is negative", who, what, rank);
  return hccl_fail(comm, ncclInvalidArgument, "%s: %s %d is no rank of this communicator (0 to %d)", who, what, rank, nranks - 1);
}

ncclResult_t hccl_check_extent(ncclComm_t comm, const char* who, const void* p, size_t count, size_t size, size_t blocks,
                               size_t* bytes) {
  uintptr_t end;
  int fits = !__builtin_mul_overflow(count, size * blocks, bytes) && *bytes <= (size_t)PTRDIFF_MAX &&
             !__builtin_add_overflow((uintptr_t)p, *bytes, &end);
  if (fits) return ncclSuccess;
  if (blocks == 1)
    return hccl_fail(comm, ncclInvalidArgument, "%s: count %zu of %zu bytes each does not fit into memory", who, count, size);
  return hccl_fail(comm, ncclInvalidArgument, "%s: count %zu of %zu bytes each for %zu ranks does not fit into memory", who,
                   count, size, blocks);
}

ncclResult_t hccl_check_pointer(ncclComm_t comm, const char* who, const char* what, const void* p) {
  if (p != NULL) return ncclSuccess;
  return hccl_fail(comm, ncclInvalidArgument, "%s: %s is NULL, but this rank uses that buffer", who, what);
}

ncclResult_t hccl_check_overlap(ncclComm_t comm, const char* who, const void* send, size_t send_bytes, const void* recv,
                                size_t recv_bytes, const void* send_in_place, const void* recv_in_place) {
  uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;
  if (s + send_bytes <= r || r + recv_bytes <= s) return ncclSuccess;
  if (send == send_in_place || recv == recv_in_place) return ncclSuccess;
  return hccl_fail(comm, ncclInvalidArgument,
                   "%s: the send buffer (%zu bytes at %p) and the receive buffer (%zu bytes at %p) overlap, but not as in-place "
                   "use demands", who, send_bytes, send, recv_bytes, recv);
}
