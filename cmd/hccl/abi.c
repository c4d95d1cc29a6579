#include "abi.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// Each name of the library that the tool calls, in one list: the table, and the loop that fills it.
#define NAMES(X)                                                                                                        \
  X(ncclGetVersion) X(ncclGetUniqueId) X(ncclCommInitRank) X(ncclCommDestroy) X(ncclGetErrorString) X(ncclGetLastError) \
  X(ncclAllReduce) X(ncclReduce) X(ncclBroadcast) X(ncclAllGather) X(ncclReduceScatter) X(ncclAlltoAll)

#define MEMBER(name) __typeof__(name)* name;
static struct { NAMES(MEMBER) } nccl;

int tool_open(const char* path, char* err, size_t errlen) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    snprintf(err, errlen, "%s", dlerror());
    return -1;
  }
#define FIND(name)                                                    \
  if ((*(void**)&nccl.name = dlsym(lib, #name)) == NULL) {            \
    snprintf(err, errlen, "%s has no function %s", path, #name);      \
    return -1;                                                        \
  }
  NAMES(FIND)
  return 0;
}

static int once(const struct tool_call* c) {
  ncclDataType_t type = (ncclDataType_t)c->type;
  ncclRedOp_t red = (ncclRedOp_t)c->red;
  switch (c->op) {
  case OP_ALL_REDUCE: return nccl.ncclAllReduce(c->send, c->recv, c->count, type, red, c->comm, NULL);
  case OP_REDUCE: return nccl.ncclReduce(c->send, c->recv, c->count, type, red, c->root, c->comm, NULL);
  case OP_BROADCAST: return nccl.ncclBroadcast(c->send, c->recv, c->count, type, c->root, c->comm, NULL);
  case OP_ALL_GATHER: return nccl.ncclAllGather(c->send, c->recv, c->count, type, c->comm, NULL);
  case OP_REDUCE_SCATTER: return nccl.ncclReduceScatter(c->send, c->recv, c->count, type, red, c->comm, NULL);
  case OP_ALL_TO_ALL: return nccl.ncclAlltoAll(c->send, c->recv, c->count, type, c->comm, NULL);
  }
  return ncclInvalidArgument;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int tool_run(const struct tool_call* call, int times, double* seconds) {
  double from = now();
  for (int k = 0; k < times; k++) {
    int result = once(call);
    if (result != ncclSuccess) return result;
  }
  *seconds = now() - from;
  return ncclSuccess;
}

int tool_version(int* version) { return nccl.ncclGetVersion(version); }
int tool_unique_id(void* id128) { return nccl.ncclGetUniqueId((ncclUniqueId*)id128); }

int tool_init(ncclComm_t* comm, int nranks, const void* id128, int rank) {
  ncclUniqueId id;
  memcpy(&id, id128, sizeof id);
  return nccl.ncclCommInitRank(comm, nranks, id, rank);
}

int tool_destroy(ncclComm_t comm) { return nccl.ncclCommDestroy(comm); }

const char* tool_error(ncclComm_t comm, int result) {
  const char* text = nccl.ncclGetLastError(comm);
  return text != NULL && text[0] != 0 ? text : nccl.ncclGetErrorString((ncclResult_t)result);
}
