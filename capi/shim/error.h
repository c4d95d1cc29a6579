// The texts behind ncclGetLastError: one per thread, and a few per communicator.
#ifndef HCCL_ERROR_H
#define HCCL_ERROR_H
#include "thread.h"

// Keeps a text for the calling thread and for comm (may be NULL or stale), logs it, and returns result.
ncclResult_t hccl_fail(ncclComm_t comm, ncclResult_t result, const char* format, ...) __attribute__((format(printf, 3, 4)));
// The same for a text that is there and was logged; later: only for comm, as no call of this thread is to blame.
void hccl_keep_text(ncclComm_t comm, const char* words, int later);
#endif
