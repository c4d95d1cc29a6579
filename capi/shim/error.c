#include "error.h"
#include "handle.h"
#include "log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t clock_; // orders texts, so that the newer of two can be told

// set leaves the last byte alone: a reader in another thread always finds an end.
static void set(struct hccl_text* t, ncclComm_t comm, const char* words) {
  size_t n = strnlen(words, sizeof t->words - 1);
  memcpy(t->words, words, n);
  t->words[n] = 0;
  t->comm = comm;
  t->when = atomic_fetch_add(&clock_, 1) + 1;
}

static void set_comm(struct hccl_comm* c, ncclComm_t comm, const char* words) {
  pthread_mutex_lock(&c->mu);
  if (c->texts == NULL) c->texts = calloc(HCCL_TEXTS, sizeof *c->texts);
  if (c->texts != NULL) {
    c->newest = (c->newest + 1) % HCCL_TEXTS;
    set(&c->texts[c->newest], comm, words);
  }
  pthread_mutex_unlock(&c->mu);
}

void hccl_keep_text(ncclComm_t comm, const char* words, int later) {
  struct hccl_comm* c = hccl_find(comm);
  if (c != NULL) set_comm(c, comm, words);
  struct hccl_thread* t = later ? NULL : hccl_thread();
  if (t != NULL) set(&t->last, comm, words);
}

ncclResult_t hccl_fail(ncclComm_t comm, ncclResult_t result, const char* format, ...) {
  char words[HCCL_TEXT_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  hccl_keep_text(comm, words, 0);
  hccl_warn("%s", words);
  return result;
}

// newest_of returns the communicator's last text, or NULL if it has none.
static struct hccl_text* newest_of(struct hccl_comm* c) {
  pthread_mutex_lock(&c->mu);
  struct hccl_text* t = c->texts != NULL && c->texts[c->newest].when != 0 ? &c->texts[c->newest] : NULL;
  pthread_mutex_unlock(&c->mu);
  return t;
}

HCCL_API(const char*, ncclGetLastError, (ncclComm_t comm)) {
  struct hccl_thread* t = hccl_thread_if();
  struct hccl_text* mine = t != NULL && t->last.when != 0 ? &t->last : NULL;
  struct hccl_comm* c = hccl_find(comm);
  struct hccl_text* its = c != NULL ? newest_of(c) : NULL;
  if (its != NULL && (mine == NULL || mine->when < its->when || (mine->comm != NULL && mine->comm != comm))) return its->words;
  return mine != NULL ? mine->words : "";
}

static const char* const results[ncclNumResults] = {
  [ncclSuccess] = "success",
  [ncclUnhandledCudaError] = "a CUDA call failed",
  [ncclSystemError] = "a system call or a library that was needed failed; ncclGetLastError says which",
  [ncclInternalError] = "an error inside HCCL: please report it with the log of NCCL_DEBUG=WARN",
  [ncclInvalidArgument] = "an argument is wrong; ncclGetLastError names it",
  [ncclInvalidUsage] = "the call is not right at this place, not available, or differs between ranks; see ncclGetLastError",
  [ncclRemoteError] = "another rank has failed, left or cannot be reached; ncclGetLastError names it",
  [ncclInProgress] = "still in progress: ask ncclCommGetAsyncError",
  [ncclTimeout] = "a time limit has passed; ncclGetLastError says who is waited for",
};

HCCL_API(const char*, ncclGetErrorString, (ncclResult_t result)) {
  long k = (long)result;
  return k >= 0 && k < ncclNumResults ? results[k] : "not a result code of this version";
}

HCCL_API(ncclResult_t, ncclGetVersion, (int* version)) {
  if (version == NULL) return hccl_fail(NULL, ncclInvalidArgument, "ncclGetVersion: version is NULL");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
