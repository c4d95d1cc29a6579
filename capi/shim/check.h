// Checks of arguments that several calls share. Each returns ncclSuccess or keeps a text that names the argument.
#ifndef HCCL_CHECK_H
#define HCCL_CHECK_H
#include "handle.h"

// The core's number (coll.DataType) of a type that a program named. From then on the shim goes by that number alone.
ncclResult_t hccl_take_type(ncclComm_t comm, const char* who, int named, int* type);
size_t hccl_type_size(int type);        // of one element
const char* hccl_type_name(int type);   // as programs name it
// what is "root" or "peer"; nranks 0: not known yet, the core checks the upper end.
ncclResult_t hccl_check_rank(ncclComm_t comm, const char* who, const char* what, int rank, int nranks);
// blocks blocks of count elements of size bytes that start at p; p may be NULL. *bytes gets the size of all.
ncclResult_t hccl_check_extent(ncclComm_t comm, const char* who, const void* p, size_t count, size_t size, size_t blocks,
                               size_t* bytes);
ncclResult_t hccl_check_pointer(ncclComm_t comm, const char* who, const char* what, const void* p);

// Buffers of one call either do not touch, or lie on each other exactly as in place demands: the smaller at offset bytes in the
// larger. Anything else would destroy data on the way.
ncclResult_t hccl_check_overlap(ncclComm_t comm, const char* who, const void* send, size_t send_bytes, const void* recv,
                                size_t recv_bytes, const void* send_in_place, const void* recv_in_place);
#endif
