// Opening the Go core inside somebody else's process:
//
//   1. what the environment says to Go programs (GODEBUG, ...) is hidden: it is meant for the host
//   2. room.c makes sure that the limits of the process let Go start, which would otherwise end the process
//   3. all signals are blocked in this thread and its timers may be late, so that the threads that Go makes while it is loaded
//      inherit both; those that run jobs are put on time again by the core
//   4. dlopen, from the folder in which this object lies
//   5. hccl_core_open waits for Go's start and returns the table, still with all signals blocked (core.h says why)
//   6. the environment is put back
//
// Signal handlers need nothing here: the core's own sigaction (capi/open.c) leaves the host's in place.
#define _GNU_SOURCE
#include "core.h"
#include "error.h"
#include "hide.h"
#include "room.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

_Atomic(const struct hccl_core_table*) hccl_table;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // held while the core is opened
static char path[PATH_MAX];                            // of this object; written once, under path_once
static pthread_once_t path_once = PTHREAD_ONCE_INIT;
static const char core_name[] = "libhccl_core.so";

void hccl_core_lock(void) { pthread_mutex_lock(&mu); }
void hccl_core_unlock(void) { pthread_mutex_unlock(&mu); }

static void find_path(void) {
  Dl_info info;
  if (dladdr(&hccl_table, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, path) == NULL) path[0] = 0;
}

const char* hccl_path(void) {
  pthread_once(&path_once, find_path);
  return path;
}

// A relative path is good only until the program changes its folder; asking costs system calls, which programs that merely load
// us (LD_PRELOAD into a shell) shall not pay.
__attribute__((constructor)) static void remember_relative_path(void) {
  Dl_info info;
  if (dladdr(&hccl_table, &info) != 0 && info.dli_fname != NULL && info.dli_fname[0] != '/') hccl_path();
}

pthread_key_t hccl_attached;
static atomic_int attached; // how many threads are

static void detach(void* t) {
  (void)t;
  atomic_fetch_sub(&attached, 1);
}

// The threads that Go makes inherit from the thread that enters it: no signals.
static void block_signals(sigset_t* before) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, before);
}

enum { LATE = 4000000 }; // ns

// become_late has the timers of threads that are made meanwhile fire up to 4 ms late. Go's monitor, which is one of them, asks to be
// woken every 20 us while threads come and go between C and Go. At the usual slack of 50 us that takes 12 % of each rank's processor
// and puts 60 us onto the slowest calls of 16 KiB; with this it wakes with the processor's own tick. The others take it back (warm
// in the core). Returns what it was.
static int become_late(void) {
  int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  if (before < 0 || before >= LATE) return 0;
  prctl(PR_SET_TIMERSLACK, LATE, 0, 0, 0);
  return before;
}

void hccl_core_attach(const struct hccl_core_table* t) {
  sigset_t before;
  block_signals(&before);
  int others = atomic_fetch_add(&attached, 1);
  t->attach(others + 1);
  if (pthread_setspecific(hccl_attached, t) != 0) detach(NULL); // no memory; the thread is attached again at its next call
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void* open_core(char* file, size_t size) {
  const char* slash = strrchr(hccl_path(), '/');
  int folder = slash != NULL ? (int)(slash - path) + 1 : 0; // without a path the loader's own search is left
  if (snprintf(file, size, "%.*s%s", folder, path, core_name) >= (int)size) return NULL;
  sigset_t before;
  block_signals(&before);
  int slack = become_late();
  void* core = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (slack > 0) prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return core;
}

static const struct hccl_core_table* start(void) {
  char file[PATH_MAX + sizeof core_name], why[256];
  if (!hccl_room_for_core(why, sizeof why)) {
    hccl_fail(NULL, ncclSystemError, "cannot load HCCL's core: %s", why);
    return NULL;
  }
  void* core = open_core(file, sizeof file);
  if (core == NULL) {
    const char* fault = dlerror();
    hccl_fail(NULL, ncclSystemError, "cannot load HCCL's core %s: %s; %s and libnccl.so.2 belong in one folder", file,
              fault != NULL ? fault : "the path is too long", core_name);
    return NULL;
  }
  const struct hccl_core_table* (*open)(const struct hccl_services*);
  *(void**)&open = dlsym(core, "hccl_core_open");
  sigset_t before;
  block_signals(&before);
  const struct hccl_core_table* t = open != NULL ? open(&hccl_services) : NULL; // this thread's first entry: see hccl_core_attach
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (t != NULL && t->version == HCCL_TABLE_VERSION && t->size >= sizeof *t) {
    int e = pthread_key_create(&hccl_attached, detach);
    if (e == 0) return t;
    hccl_fail(NULL, ncclSystemError, "no thread-specific key is left for HCCL: %s", strerror(e));
    return NULL;
  }
  hccl_fail(NULL, ncclSystemError, "%s was not built together with %s: install both from the same build", file, path);
  return NULL;
}

const struct hccl_core_table* hccl_core_load(void) {
  if (hccl_check_fork("HCCL") != ncclSuccess) return NULL;
  hccl_watch_forks();
  pthread_mutex_lock(&mu);
  const struct hccl_core_table* t = atomic_load(&hccl_table);
  if (t == NULL) {
    struct hccl_hidden hidden;
    hccl_hide_environment(&hidden);
    t = start();
    hccl_show_environment(&hidden);
    atomic_store_explicit(&hccl_table, t, memory_order_release);
  }
  pthread_mutex_unlock(&mu);
  return t;
}

ncclResult_t hccl_no_core(void) { return hccl_check_fork("HCCL") != ncclSuccess ? ncclInvalidUsage : ncclSystemError; }
