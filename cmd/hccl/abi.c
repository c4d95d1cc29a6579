#include "abi.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// Each name of the library that the tool calls, in two lists: what every library has, and what older ones lack. They make the table
// and the loops that fill it.
#define NAMES(X)                                                                                                        \
  X(ncclGetVersion) X(ncclGetUniqueId) X(ncclCommInitRank) X(ncclCommDestroy) X(ncclGetErrorString) X(ncclGetLastError) \
  X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce) X(ncclReduce) X(ncclBroadcast) X(ncclAllGather)                    \
  X(ncclReduceScatter) X(ncclSend) X(ncclRecv)
#define LATER(X)                                                                                        \
  X(ncclMemAlloc) X(ncclAlltoAll) X(ncclGather) X(ncclScatter) X(hcclAllGatherV) X(hcclReduceScatterV) \
  X(hcclAlltoAllV)

#define MEMBER(name) __typeof__(name)* name;
static struct { NAMES(MEMBER) LATER(MEMBER) } nccl;

int tool_open(const char* path, char* err, size_t errlen) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    snprintf(err, errlen, "%s", dlerror());
    return -1;
  }
#define FIND(name) *(void**)&nccl.name = dlsym(lib, #name);
#define DEMAND(name)                                                  \
  if (nccl.name == NULL) {                                            \
    snprintf(err, errlen, "%s has no function %s", path, #name);      \
    return -1;                                                        \
  }
  NAMES(FIND)
  LATER(FIND)
  NAMES(DEMAND)
  return 0;
}

const char* tool_missing(enum tool_op op) {
#define ABSENT(name) nccl.name == NULL ? #name : NULL
  switch (op) {
  case OP_ALL_TO_ALL: return ABSENT(ncclAlltoAll);
  case OP_GATHER: return ABSENT(ncclGather);
  case OP_SCATTER: return ABSENT(ncclScatter);
  case OP_ALL_GATHER_V: return ABSENT(hcclAllGatherV);
  case OP_REDUCE_SCATTER_V: return ABSENT(hcclReduceScatterV);
  case OP_ALL_TO_ALL_V: return ABSENT(hcclAlltoAllV);
  default: return NULL;
  }
}

// Both halves are asked of the library before an error is told: the group is open and must be ended by the caller.
static int exchange(const struct tool_call* c) {
  int sent = nccl.ncclSend(c->send, c->count, (ncclDataType_t)c->type, c->peer_to, c->comm, NULL);
  int received = nccl.ncclRecv(c->recv, c->count, (ncclDataType_t)c->type, c->peer_from, c->comm, NULL);
  return sent != ncclSuccess ? sent : received;
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
  case OP_GATHER: return nccl.ncclGather(c->send, c->recv, c->count, type, c->root, c->comm, NULL);
  case OP_SCATTER: return nccl.ncclScatter(c->send, c->recv, c->count, type, c->root, c->comm, NULL);
  case OP_SEND_RECV: return exchange(c);
  case OP_SEND: return nccl.ncclSend(c->send, c->count, type, c->peer_to, c->comm, NULL);
  case OP_RECV: return nccl.ncclRecv(c->recv, c->count, type, c->peer_from, c->comm, NULL);
  case OP_ALL_GATHER_V: return nccl.hcclAllGatherV(c->send, c->recv, c->counts, NULL, type, c->comm, NULL);
  case OP_REDUCE_SCATTER_V: return nccl.hcclReduceScatterV(c->send, c->recv, c->counts, NULL, type, red, c->comm, NULL);
  case OP_ALL_TO_ALL_V:
    return nccl.hcclAlltoAllV(c->send, c->counts, NULL, c->recv, c->from_counts, NULL, type, c->comm, NULL);
  }
  return ncclInvalidArgument;
}

static int group(const struct tool_call* calls, int n, int fold, int* failed) {
  int result = nccl.ncclGroupStart();
  for (int f = 0; f < fold; f++)
    for (int k = 0; k < n && result == ncclSuccess; k++)
      if ((result = once(&calls[k])) != ncclSuccess) *failed = k;
  int end = nccl.ncclGroupEnd();
  return result != ncclSuccess ? result : end;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int tool_run(const struct tool_call* calls, int n, int fold, int times, double* seconds, double* samples, int* failed) {
  int grouped = n > 1 || fold > 1 || calls->op == OP_SEND_RECV;
  double from = now(), last = from;
  *failed = 0;
  for (int k = 0; k < times; k++) {
    int result = grouped ? group(calls, n, fold, failed) : once(calls);
    if (result != ncclSuccess) return result;
    if (samples != NULL) {
      double t = now();
      samples[k] = t - last;
      last = t;
    }
  }
  *seconds = now() - from;
  return ncclSuccess;
}

int tool_version(int* version) { return nccl.ncclGetVersion(version); }
int tool_unique_id(void* id128) { return nccl.ncclGetUniqueId((ncclUniqueId*)id128); }

int tool_init(ncclComm_t* comms, int n, int nranks, const void* id128, int first) {
  ncclUniqueId id;
  memcpy(&id, id128, sizeof id);
  if (n == 1) return nccl.ncclCommInitRank(comms, nranks, id, first);
  int result = nccl.ncclGroupStart();
  for (int k = 0; k < n && result == ncclSuccess; k++) result = nccl.ncclCommInitRank(&comms[k], nranks, id, first + k);
  int end = nccl.ncclGroupEnd();
  return result != ncclSuccess ? result : end;
}

int tool_destroy(ncclComm_t comm) { return nccl.ncclCommDestroy(comm); }

int tool_alloc(void** memory, size_t bytes) {
  return nccl.ncclMemAlloc == NULL ? ncclInvalidUsage : nccl.ncclMemAlloc(memory, bytes);
}

const char* tool_error(ncclComm_t comm, int result) {
  const char* text = nccl.ncclGetLastError(comm);
  return text != NULL && text[0] != 0 ? text : nccl.ncclGetErrorString((ncclResult_t)result);
}
