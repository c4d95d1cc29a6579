#include "check.h"
#include "error.h"

// In the order of coll.DataType: NCCL's types, then those that only HCCL has.
static const struct {
  const char* name;
  int named, size;
} types[] = {
#define TYPE(name, size) {#name, name, size}
  TYPE(ncclInt8, 1),     TYPE(ncclUint8, 1),   TYPE(ncclInt32, 4),   TYPE(ncclUint32, 4),   TYPE(ncclInt64, 8),
  TYPE(ncclUint64, 8),   TYPE(ncclFloat16, 2), TYPE(ncclFloat32, 4), TYPE(ncclFloat64, 8),  TYPE(ncclBfloat16, 2),
  TYPE(ncclFloat8e4m3, 1), TYPE(ncclFloat8e5m2, 1), TYPE(hcclInt16, 2), TYPE(hcclUint16, 2), TYPE(hcclBool, 1),
};

enum { TYPES = sizeof types / sizeof *types };

size_t hccl_type_size(int type) { return (size_t)types[type].size; }
const char* hccl_type_name(int type) { return types[type].name; }

ncclResult_t hccl_take_type(ncclComm_t comm, const char* who, int named, int* type) {
  *type = named >= hcclInt16 ? named - hcclInt16 + ncclNumTypes : named;
  if (*type >= 0 && *type < TYPES && types[*type].named == named) return ncclSuccess;
  *type = 0;
  return hccl_fail(comm, ncclInvalidArgument, "%s: type %d is no ncclDataType_t (0 to %d) and none of HCCL's (%d to %d)", who,
                   named, ncclNumTypes - 1, hcclInt16, hcclBool);
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
