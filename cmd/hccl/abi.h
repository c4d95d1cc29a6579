// The library as this tool sees it: NCCL's public calls, found by name in a library that is loaded while the tool runs. Nothing
// else of the library is used, so that the tool measures what any C program gets.
#ifndef HCCL_TOOL_ABI_H
#define HCCL_TOOL_ABI_H
#include <stddef.h>
#include <nccl.h>

enum tool_op { OP_ALL_REDUCE, OP_REDUCE, OP_BROADCAST, OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_ALL_TO_ALL };

// One call to be repeated. count is what the operation's own function takes.
struct tool_call {
  enum tool_op op;
  const void* send;
  void* recv;
  size_t count;
  int type, red, root;
  ncclComm_t comm;
};

// Loads the library; on failure returns -1 and fills err.
int tool_open(const char* path, char* err, size_t errlen);

// Runs the call so many times, back to back, and gives the seconds that all of them took. Stops at the first error.
int tool_run(const struct tool_call* call, int times, double* seconds);

int tool_version(int* version);
int tool_unique_id(void* id128);
int tool_init(ncclComm_t* comm, int nranks, const void* id128, int rank);
int tool_destroy(ncclComm_t comm);
const char* tool_error(ncclComm_t comm, int result); // the library's own text where it has one
#endif
