// Memory calls: the core knows the memory, the shim only the arguments.
#include "core.h"
#include "error.h"
#include "handle.h"

static ncclResult_t null(ncclComm_t comm, const char* who, const char* what) {
  return hccl_fail(comm, ncclInvalidArgument, "%s: %s is NULL", who, what);
}

HCCL_API(ncclResult_t, ncclMemAlloc, (void** ptr, size_t size)) {
  static const char who[] = "ncclMemAlloc";
  if (ptr == NULL) return null(NULL, who, "ptr");
  *ptr = NULL;
  if (size == 0) return ncclSuccess;
  if (size > (size_t)PTRDIFF_MAX) return hccl_fail(NULL, ncclInvalidArgument, "%s: size %zu does not fit into memory", who, size);
  const struct hccl_core_table* table = hccl_core();
  return table != NULL ? (ncclResult_t)table->mem_alloc(ptr, size) : hccl_no_core();
}

HCCL_API(ncclResult_t, ncclMemFree, (void* ptr)) {
  if (ptr == NULL) return ncclSuccess;
  const struct hccl_core_table* table = hccl_core();
  return table != NULL ? (ncclResult_t)table->mem_free(ptr) : hccl_no_core();
}

HCCL_API(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle)) {
  static const char who[] = "ncclCommRegister";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  if (buff == NULL) return null(comm, who, "buff");
  if (handle == NULL) return null(comm, who, "handle");
  if (size == 0 || (uintptr_t)buff + size < (uintptr_t)buff)
    return hccl_fail(comm, ncclInvalidArgument, "%s: size %zu is no size of a buffer", who, size);
  const struct hccl_core_table* table = hccl_core();
  return table != NULL ? (ncclResult_t)table->comm_register(hccl_number(c, comm), buff, size, handle) : hccl_no_core();
}

HCCL_API(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle)) {
  static const char who[] = "ncclCommDeregister";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  if (handle == NULL) return null(comm, who, "handle");
  const struct hccl_core_table* table = hccl_core();
  return table != NULL ? (ncclResult_t)table->comm_deregister(hccl_number(c, comm), handle) : hccl_no_core();
}

HCCL_API(ncclResult_t, ncclCommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value)) {
  static const char who[] = "ncclCommMemStats";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  if (value == NULL) return null(comm, who, "value");
  if ((int)stat < ncclStatGpuMemSuspend || (int)stat > ncclStatGpuMemTotal)
    return hccl_fail(comm, ncclInvalidArgument, "%s: stat %d is no ncclCommMemStat_t", who, (int)stat);
  const struct hccl_core_table* table = hccl_core();
  return table != NULL ? (ncclResult_t)table->mem_stats(hccl_number(c, comm), (int)stat, value) : hccl_no_core();
}
