// A call as the user made it, and its way into a group or the core. Every operation goes through here, whatever its form.
#ifndef HCCL_CALL_H
#define HCCL_CALL_H
#include "coll.h"
#include "handle.h"

struct hccl_call { // what the function has no use for is ignored
  enum hccl_func func;
  const char* who;
  const void* send;
  void* recv;
  size_t count;
  int type, op;
  int root; // or the peer of a message
  int tag;
  int is_ours; // a receive by HCCL's rules: of any source, any tag and fewer elements
  hcclStatus_t* status;
  const uint64_t *scounts, *sdispls, *rcounts, *rdispls; // V forms; NULL for the displacements: blocks without gaps
  ncclComm_t comm;
  cudaStream_t stream;
  const ncclCollConfig_t* config;
  int64_t limit; // milliseconds; 0: the communicator's, negative: none
};

// Displacements that the caller did not give. They must live until the item has been started.
struct hccl_packed {
  uint64_t *send, *recv; // owned
};

// Checks the call and makes an item of it. packed is to be freed in any case.
ncclResult_t hccl_fill(const struct hccl_call* a, struct hccl_item* item, struct hccl_extra* extra, struct hccl_packed* packed);
void hccl_packed_free(struct hccl_packed* packed);

// Does the call, or keeps it for the end of the thread's group.
ncclResult_t hccl_call(const struct hccl_call* a);

// Reads what a program has filled in. The stream is not part of it.
ncclResult_t hccl_read_call(const hcclCall_t* call, ncclComm_t comm, const char* who, struct hccl_call* a);

// The kinds of calls, each in its own file. item has what is common to all. Checks are made in this order: comm, stream, type, op,
// root, count, buffers, config; the first fault is the one that is told.
ncclResult_t hccl_fill_collective(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item, struct hccl_extra* extra);
ncclResult_t hccl_fill_vector(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item, struct hccl_extra* extra,
                              struct hccl_packed* packed);
ncclResult_t hccl_fill_message(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item);
ncclResult_t hccl_fill_barrier(const struct hccl_call* a, struct hccl_item* item);
#endif
