#include "absent.h"
#include "error.h"
#include "handle.h"
#include "log.h"
#include <stdio.h>

enum { NAMES = 64 }; // more than there are such calls

// once says whether who comes here for the first time. Names are literals, so their addresses tell them apart.
static int once(const char* who) {
  static _Atomic(const char*) seen[NAMES];
  for (int k = 0; k < NAMES; k++) {
    const char* none = NULL;
    if (atomic_compare_exchange_strong(&seen[k], &none, who)) return 1;
    if (none == who) return 0;
  }
  return 0;
}

ncclResult_t hccl_absent(ncclComm_t comm, const char* who) {
  char words[HCCL_TEXT_SIZE];
  snprintf(words, sizeof words, "%s: HCCL has this call for programs that look for it, but cannot do it yet", who);
  hccl_keep_text(comm, words, 0);
  if (once(who)) hccl_warn("%s", words);
  return ncclInvalidUsage;
}

ncclResult_t hccl_absent_on(ncclComm_t comm, const char* who) {
  return hccl_need(comm, who) != NULL ? hccl_absent(comm, who) : ncclInvalidArgument;
}

ncclResult_t hccl_absent_with(const void* p, const char* who, const char* what) {
  return p != NULL ? hccl_absent(NULL, who) : hccl_fail(NULL, ncclInvalidArgument, "%s: %s is NULL", who, what);
}

HCCL_API(ncclResult_t, ncclCommShrink,
         (ncclComm_t comm, int* excluded, int excluded_count, ncclComm_t* child, ncclConfig_t* config, int flags)) {
  (void)excluded, (void)excluded_count, (void)config, (void)flags;
  if (child != NULL) *child = NULL;
  return hccl_absent_on(comm, "ncclCommShrink");
}

HCCL_API(ncclResult_t, ncclCommGrow,
         (ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* child, ncclConfig_t* config)) {
  (void)nranks, (void)id, (void)rank, (void)config;
  if (child == NULL) return hccl_fail(NULL, ncclInvalidArgument, "ncclCommGrow: child is NULL");
  *child = NULL;
  return comm != NULL ? hccl_absent_on(comm, "ncclCommGrow") : hccl_absent(NULL, "ncclCommGrow"); // NULL: a rank that joins
}

HCCL_API(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int flags)) {
  (void)flags;
  return comm != NULL ? hccl_absent_on(comm, "ncclCommRevoke") : ncclSuccess;
}

HCCL_API(ncclResult_t, ncclCommSuspend, (ncclComm_t comm, int flags)) {
  (void)flags;
  return hccl_absent_on(comm, "ncclCommSuspend");
}

HCCL_API(ncclResult_t, ncclCommResume, (ncclComm_t comm)) { return hccl_absent_on(comm, "ncclCommResume"); }

HCCL_API(ncclResult_t, ncclCommWindowRegister, (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int flags)) {
  (void)buff, (void)size, (void)flags;
  if (win != NULL) *win = NULL;
  return hccl_absent_on(comm, "ncclCommWindowRegister");
}

HCCL_API(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win)) {
  (void)win;
  return hccl_absent_on(comm, "ncclCommWindowDeregister");
}

HCCL_API(ncclResult_t, ncclWinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void** ptr)) {
  (void)win;
  if (ptr != NULL) *ptr = NULL;
  return hccl_absent_on(comm, "ncclWinGetUserPtr");
}

HCCL_API(ncclResult_t, ncclPutSignal,
         (const void* local, size_t count, ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int signal, int ctx,
          unsigned int flags, ncclComm_t comm, cudaStream_t stream)) {
  (void)local, (void)count, (void)type, (void)peer, (void)win, (void)offset, (void)signal, (void)ctx, (void)flags, (void)stream;
  return hccl_absent_on(comm, "ncclPutSignal");
}

HCCL_API(ncclResult_t, ncclSignal, (int peer, int signal, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream)) {
  (void)peer, (void)signal, (void)ctx, (void)flags, (void)stream;
  return hccl_absent_on(comm, "ncclSignal");
}

HCCL_API(ncclResult_t, ncclWaitSignal, (int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream)) {
  (void)count, (void)signals, (void)stream;
  return hccl_absent_on(comm, "ncclWaitSignal");
}
