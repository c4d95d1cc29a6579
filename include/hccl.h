/* What HCCL has beyond NCCL's interface: blocks of different sizes, calls as data with a limit of their own, barriers, messages
 * with tags, requests, streams of host memory. All of it is in libnccl.so.2 and comes with nccl.h; sizes and counts are 64 bits
 * everywhere, times are milliseconds. */
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

/* ---- Calls as data: every operation in one form, with what the plain forms have no room for ---- */

typedef enum {
  hcclFuncAllReduce = 0,
  hcclFuncReduce = 1,
  hcclFuncBroadcast = 2,
  hcclFuncAllGather = 3,
  hcclFuncReduceScatter = 4,
  hcclFuncAlltoAll = 5,
  hcclFuncGather = 6,
  hcclFuncScatter = 7,
  hcclFuncAllGatherV = 8,
  hcclFuncReduceScatterV = 9,
  hcclFuncAlltoAllV = 10,
  hcclFuncSend = 11,
  hcclFuncRecv = 12,
  hcclFuncBarrier = 14
} hcclFunc_t;

/* No limit, where a time is asked for. */
#define HCCL_NO_LIMIT (-1)

/* In place of a rank and a tag, in receives. */
#define HCCL_ANY_SOURCE (-1)
#define HCCL_ANY_TAG (-1)

/* What a receive has taken. */
typedef struct {
  int source, tag;
  uint64_t bytes;
} hcclStatus_t;

/* Members that the function has no use for are ignored; what is 0 is not set. The arguments mean what they mean in the plain form. */
typedef struct hcclCall_v1 {
  size_t size;        /* these two are set by HCCL_CALL_INITIALIZER */
  unsigned int magic;
  hcclFunc_t func;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;           /* the root, or the peer of a message */
  int tag;            /* of a message: see hcclSend and hcclRecv */
  int64_t timeout;    /* for the whole call, from when it begins; 0: the communicator's limit, HCCL_NO_LIMIT: none */
  const void* send;
  void* recv;
  uint64_t count;
  const uint64_t *sendCounts, *sendDispls; /* hcclFuncAlltoAllV */
  const uint64_t *recvCounts, *recvDispls; /* the V forms; hcclFuncAllGatherV and hcclFuncReduceScatterV have only these */
  const ncclCollConfig_t* config;          /* of collectives with one count */
  hcclStatus_t* status;                    /* of hcclFuncRecv, which takes what hcclRecv takes; or NULL */
} hcclCall_t;

#define HCCL_CALL_MAGIC 0x48434331u
#define HCCL_CALL_INITIALIZER \
  { \
    sizeof(hcclCall_t), HCCL_CALL_MAGIC, hcclFuncAllReduce, ncclInt8, ncclSum, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
    NULL \
  }

/* Does the call as its plain form would: on NULL it returns with the result, on a stream at once, in a group at its end. */
ncclResult_t hcclRun(const hcclCall_t* call, ncclComm_t comm, cudaStream_t stream);

/* Messages with a tag, which is not negative; NCCL's have 0. A message goes to the receive of its sender and tag that was called
   first; a receive takes the first message of those that it may take, from any source the first that came. It takes up to count
   elements, of one type; status, or NULL, says what it was, and is filled when the call ends (on a stream, when that has come so far). */
ncclResult_t hcclSend(const void* send, uint64_t count, ncclDataType_t type, int peer, int tag, ncclComm_t comm, cudaStream_t stream);
ncclResult_t hcclRecv(void* recv, uint64_t count, ncclDataType_t type, int source, int tag, ncclComm_t comm, cudaStream_t stream,
                      hcclStatus_t* status);

/* ---- Limits. What is over ends with ncclTimeout, and the text names the ranks that have not come: docs/requests.md ---- */

/* How long an operation of the communicator may stand still, also one that is under way; 0 or HCCL_NO_LIMIT: for ever. Holds on
   this rank; before the first Set it is HCCL_TIMEOUT. */
ncclResult_t hcclCommSetTimeout(ncclComm_t comm, int64_t timeout);
ncclResult_t hcclCommGetTimeout(ncclComm_t comm, int64_t* timeout);

/* Returns when all ranks have called it; timeout as in hcclCall_t. */
ncclResult_t hcclBarrier(int64_t timeout, ncclComm_t comm, cudaStream_t stream);

/* ---- Requests: calls that go on while the program does something else ----

   hcclStart begins a call and returns at once, also within an open group, to which it does not belong. Until the request is over its
   buffers are the library's; all else may go when hcclStart has returned. Collectives of one communicator are done in the order in
   which they were started or called; messages do not wait for each other, nor for collectives. A request goes on by threads of the
   library, whatever the program does. Handles are numbers; one that was freed is refused. More in docs/requests.md. */

typedef struct hcclRequest* hcclRequest_t;
typedef void (*hcclRequestCallback_t)(hcclRequest_t request, ncclResult_t result, void* arg);

ncclResult_t hcclStart(const hcclCall_t* call, ncclComm_t comm, hcclRequest_t* request);

/* How the call ended, or ncclInProgress. Wait returns that too if the timeout is over first, and the request goes on; 0 only looks,
   HCCL_NO_LIMIT waits for as long as the call takes. A request may be waited for again, and by several threads. */
ncclResult_t hcclRequestTest(hcclRequest_t request);
ncclResult_t hcclRequestWait(hcclRequest_t request, int64_t timeout);
/* All: the result of the first in the list that failed. Any: that of the one that is over, whose place is *index; *index is n if
   the timeout is over first. A NULL in the list is passed over. */
ncclResult_t hcclRequestWaitAll(const hcclRequest_t* requests, size_t n, int64_t timeout);
ncclResult_t hcclRequestWaitAny(const hcclRequest_t* requests, size_t n, int64_t timeout, size_t* index);

/* What a receive has taken; the result as of Test. */
ncclResult_t hcclRequestGetStatus(hcclRequest_t request, hcclStatus_t* status);
/* The text of a call that failed, else ""; never NULL. It lives until the thread's next error. */
const char* hcclRequestGetLastError(hcclRequest_t request);
/* Has fn called once the request is over, at once if it is; on a thread of the library, one callback of a communicator after the
   other. It may call the library. A request has one callback, which comes also after Free. */
ncclResult_t hcclRequestSetCallback(hcclRequest_t request, hcclRequestCallback_t fn, void* arg);
/* Takes back a receive that no message has met: it ends with ncclInvalidUsage. Anything else goes on to its own end. Wait tells. */
ncclResult_t hcclRequestCancel(hcclRequest_t request);
/* Lets go of the handle. A call that is not over goes on, with its buffers. NULL is success. */
ncclResult_t hcclRequestFree(hcclRequest_t request);

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
