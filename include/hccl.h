/* What HCCL has beyond NCCL's interface: blocks of different sizes, streams of host memory. All of it is in libnccl.so.2 and
 * comes with nccl.h; sizes and counts are 64 bits everywhere. */
#ifndef HCCL_H_
#define HCCL_H_

#include "hccl_compat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Blocks of different sizes ---- */

/* counts and displs have an entry per rank, in elements; displs NULL: blocks without gaps. In place as in NCCL's forms. */
ncclResult_t hcclAllGatherV(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, ncclDataType_t type,
                            ncclComm_t comm, cudaStream_t stream);
ncclResult_t hcclReduceScatterV(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs,
                                ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t hcclAlltoAllV(const void* send, const uint64_t* send_counts, const uint64_t* send_displs, void* recv,
                           const uint64_t* recv_counts, const uint64_t* recv_displs, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);

/* ---- Streams of host memory. Not for CUDA's streams and events, whose handles are refused ----

   Work on a stream is done in order, by threads of the library, while the program goes on: operations, the program's own functions,
   events. A call on a stream returns at once; its buffers are the library's until the stream has been synchronised. Operations of
   one communicator keep the order of their calls, also on several streams; a call on NULL waits for what the communicator has
   queued. A group on several streams starts when all have reached it, and all go on after it; one that has calls on NULL of a
   blocking communicator too returns when all of it is done. An error of queued work is told once by Synchronize, and for good by
   ncclCommGetAsyncError. On NULL (and CUDA's 1 and 2) everything is done: Synchronize and Query say so. */

ncclResult_t hcclStreamCreate(cudaStream_t* stream);
/* Returns at once; what is queued goes on to its end. NULL is success. */
ncclResult_t hcclStreamDestroy(cudaStream_t stream);
ncclResult_t hcclStreamSynchronize(cudaStream_t stream);
/* ncclInProgress while something is queued or running; then success, or the error that Synchronize will return. */
ncclResult_t hcclStreamQuery(cudaStream_t stream);
/* Calls fn(arg) in the stream's order, on a thread of the library; on NULL at once, in the caller's. fn may call the library, but
   not wait for its own stream. */
ncclResult_t hcclStreamLaunchHostFunc(cudaStream_t stream, void (*fn)(void*), void* arg);
/* Holds the stream up until the point where event was recorded last before this call; never recorded: goes on. */
ncclResult_t hcclStreamWaitEvent(cudaStream_t stream, cudaEvent_t event);

ncclResult_t hcclEventCreate(cudaEvent_t* event);
/* Streams that wait for the event still do. NULL is success. */
ncclResult_t hcclEventDestroy(cudaEvent_t event);
/* The event is reached when what is queued on the stream now is done. */
ncclResult_t hcclEventRecord(cudaEvent_t event, cudaStream_t stream);
ncclResult_t hcclEventSynchronize(cudaEvent_t event);
/* Success: reached, or never recorded; else ncclInProgress. */
ncclResult_t hcclEventQuery(cudaEvent_t event);
/* The time between two events that have been reached; ncclInProgress until then. */
ncclResult_t hcclEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

#ifdef __cplusplus
}
#endif

#endif
