// The core's one exported function, the table that it returns, and the signal function that runtime/cgo finds in place of libc's.
#include "services.h"
#include "_cgo_export.h"
#include <signal.h>

static const struct hccl_services* services; // the shim's, for ever

void hccl_core_error(struct ncclComm* comm, const char* text, int later) { services->error(comm, text, later); }
void hccl_core_ready(struct ncclComm* comm, int rank, int nranks, void* hot) { services->ready(comm, rank, nranks, hot); }
void hccl_core_fd_opened(int fd) { services->fd_opened(fd); }
void hccl_core_fd_closed(int fd) { services->fd_closed(fd); }
const char* hccl_core_path(void) { return services->path(); }

// runtime/cgo installs Go's handlers through sigaction. This one only reads: the host's handlers stay as they are, in every
// thread and at every moment, and Go believes what it asked for. Hidden, so that only this object sees it.
int __sigaction(int sig, const struct sigaction* act, struct sigaction* old);
__attribute__((visibility("hidden"))) int sigaction(int sig, const struct sigaction* act, struct sigaction* old) {
  (void)act;
  return __sigaction(sig, NULL, old);
}

// Go's exports have no const: these say what core_table.h promises.
static int simulate(const struct hccl_item* items, size_t n, float* microseconds) {
  return hccl_core_simulate((struct hccl_item*)items, n, microseconds);
}

static struct hccl_core_table table = {
  .version = HCCL_TABLE_VERSION,
  .size = sizeof table,
  .enqueue = hccl_core_enqueue,
  .simulate = simulate,
  .finalize = hccl_core_finalize,
  .destroy = hccl_core_destroy,
  .abort = hccl_core_abort,
  .async_error = hccl_core_async_error,
  .mem_alloc = hccl_core_mem_alloc,
  .mem_free = hccl_core_mem_free,
  .comm_register = hccl_core_comm_register,
  .comm_deregister = hccl_core_comm_deregister,
  .mem_stats = hccl_core_mem_stats,
};

__attribute__((visibility("default"))) const struct hccl_core_table* hccl_core_open(const struct hccl_services* s) {
  if (s == NULL || s->version != HCCL_TABLE_VERSION) return NULL;
  services = s;
  hccl_core_start();
  *(void**)&table.fast = hccl_core_fast();
  return &table;
}
