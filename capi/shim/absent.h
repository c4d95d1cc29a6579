// Calls that NCCL has and HCCL does not have yet. Programs look for the names and must find them; who calls one is told so.
#ifndef HCCL_ABSENT_H
#define HCCL_ABSENT_H
#include "api.h"

// ncclInvalidUsage with a text, logged once for each who. comm may be NULL.
ncclResult_t hccl_absent(ncclComm_t comm, const char* who);
// For calls on a communicator: a wrong handle is told first.
ncclResult_t hccl_absent_on(ncclComm_t comm, const char* who);
// For calls with an argument that must be there.
ncclResult_t hccl_absent_with(const void* p, const char* who, const char* what);
#endif
