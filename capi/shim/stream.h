// Streams and events of host memory. Their handles are numbers with a mark (core_table.h): what is none, or was destroyed, is an
// error and not a crash. The core keeps them; a program that uses none pays nothing.
#ifndef HCCL_STREAM_H
#define HCCL_STREAM_H
#include "api.h"

// Judges the stream of a call and stores in *taken what the core is told of it, NULL for every name of the NULL stream.
ncclResult_t hccl_take_stream(ncclComm_t comm, const char* who, cudaStream_t stream, void** taken);
#endif
