// What a forked child may do. Before the core is loaded: everything. After: nothing but ask for the version and for texts, because
// a Go runtime does not survive a fork; the child closes the core's descriptors, so that peers see the parent's end when it comes.
#include "core.h"
#include "error.h"
#include "handle.h"
#include "meet.h"
#include <pthread.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int forked_from; // the process in which the core ran, in its children

static void prepare(void) {
  hccl_core_lock();
  hccl_handles_lock();
  hccl_meet_fork_prepare();
}

static void parent(void) {
  hccl_meet_fork_parent();
  hccl_handles_unlock();
  hccl_core_unlock();
}

static void child(void) {
  if (atomic_load(&hccl_table) != NULL) {
    atomic_store(&forked_from, (int)getppid());
    atomic_store(&hccl_table, NULL);
    atomic_store(&hccl_entries, 0); // no handle is good any more; the locks of entries may be held by threads that are not here
    hccl_fds_close_all();
  }
  if (atomic_load(&forked_from) != 0) hccl_meet_core_loaded_child();
  else hccl_meet_fork_child();
  hccl_handles_unlock();
  hccl_core_unlock();
}

static void watch(void) { pthread_atfork(prepare, parent, child); }

void hccl_watch_forks(void) { pthread_once(&once, watch); }

ncclResult_t hccl_check_fork(const char* who) {
  int from = atomic_load(&forked_from);
  if (from == 0) return ncclSuccess;
  return hccl_fail(NULL, ncclInvalidUsage,
                   "%s: this process was forked from process %d after communicators had been made there, and a copy of them cannot "
                   "work: fork before the first init, or exec a program of its own", who, from);
}
