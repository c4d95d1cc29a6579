// The core: libhccl_core.so beside this object, opened at the first call that needs it and never closed.
#ifndef HCCL_CORE_H
#define HCCL_CORE_H
#include "api.h"
#include <pthread.h>
#include <stdatomic.h>

extern _Atomic(const struct hccl_core_table*) hccl_table; // NULL: not opened, or not ours any more after a fork

const struct hccl_core_table* hccl_core_load(void);

// Binds the calling thread to the core's Go runtime. At a thread's first entry Go keeps its signal mask, and when the thread ends
// Go puts that mask back, from a destructor of the thread's data. A host program written in Go has by then blocked all signals and
// taken down what its handlers stand on: one pending SIGURG, which its collector sends all the time, was its death. So the first
// entry is made with all signals blocked, and the thread's own mask put back behind it.
void hccl_core_attach(const struct hccl_core_table* t);
extern pthread_key_t hccl_attached; // valid once hccl_table is set; not NULL on a thread that is bound

// The core's table, or NULL with a text that says why there is none. The calling thread may enter the core after it.
static inline const struct hccl_core_table* hccl_core(void) {
  const struct hccl_core_table* t = atomic_load_explicit(&hccl_table, memory_order_acquire);
  if (t == NULL) t = hccl_core_load();
  if (t != NULL && pthread_getspecific(hccl_attached) == NULL) hccl_core_attach(t);
  return t;
}

// What a call answers when hccl_core has given NULL.
ncclResult_t hccl_no_core(void);

// 0, or an error: this process was forked from one in which the core ran.
ncclResult_t hccl_check_fork(const char* who);
// Registers the fork handlers, once. To be called before anything starts that a forked child must know of.
void hccl_watch_forks(void);

// Descriptors that the core keeps open: a forked child closes them, so that a peer's death is seen at once.
void hccl_fd_opened(int fd);
void hccl_fd_closed(int fd);
void hccl_fds_close_all(void);

extern const struct hccl_services hccl_services; // services.c
const char* hccl_path(void);                     // where this object was loaded from, absolute; "" if that is not known

// For the fork handlers: nobody is opening the core meanwhile.
void hccl_core_lock(void);
void hccl_core_unlock(void);
#endif
