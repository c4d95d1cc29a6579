// The library as this tool sees it: public calls, found by name in a library that is loaded while the tool runs. Nothing else of
// the library is used, so that the tool measures what any C program gets.
#ifndef HCCL_TOOL_ABI_H
#define HCCL_TOOL_ABI_H
#include <stddef.h>
#include <stdint.h>
#include <nccl.h>

enum tool_op {
  OP_ALL_REDUCE,
  OP_REDUCE,
  OP_BROADCAST,
  OP_ALL_GATHER,
  OP_REDUCE_SCATTER,
  OP_ALL_TO_ALL,
  OP_GATHER,
  OP_SCATTER,
  OP_SEND_RECV, // send to peer_to and receive from peer_from, in one group
  OP_ALL_GATHER_V,
  OP_REDUCE_SCATTER_V,
  OP_ALL_TO_ALL_V,
  OP_SEND, // to peer_to, alone
  OP_RECV, // from peer_from, alone
};

// One rank's part in an operation. count is what the operation's own function takes; the V forms take counts (and from_counts, of
// what is received) with an entry per rank instead.
struct tool_call {
  enum tool_op op;
  const void* send;
  void* recv;
  size_t count;
  const uint64_t *counts, *from_counts;
  int type, red, root, peer_to, peer_from;
  ncclComm_t comm;
};

// Loads the library; on failure returns -1 and fills err.
int tool_open(const char* path, char* err, size_t errlen);

// The name of the op's function where the library has none, or NULL.
const char* tool_missing(enum tool_op op);

// Runs the n calls of one thread, one per rank that it holds, `times` times back to back, and gives the seconds that all took. With
// fold > 1 so many repetitions are one group. Where samples is not NULL, it receives the seconds of each time, which costs two looks
// at the clock. Stops at the first error; *failed is then the rank's call that it belongs to.
int tool_run(const struct tool_call* calls, int n, int fold, int times, double* seconds, double* samples, int* failed);

int tool_version(int* version);
int tool_unique_id(void* id128);

// Makes n communicators of one thread, ranks first to first+n-1.
int tool_init(ncclComm_t* comms, int n, int nranks, const void* id128, int first);
int tool_destroy(ncclComm_t comm);
int tool_alloc(void** memory, size_t bytes);
const char* tool_error(ncclComm_t comm, int result); // the library's own text where it has one
#endif
