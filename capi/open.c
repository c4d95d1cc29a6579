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
unsigned long long hccl_core_strangers(void) { return services->strangers(); }
size_t hccl_core_take_key(unsigned char* out, size_t room) { return services->take_key(out, room); }
void hccl_core_call(void* fn, void* arg) {
  void (*f)(void*);
  *(void**)&f = fn;
  f(arg);
}

void hccl_core_tell(void* fn, void* request, int result, void* arg) {
  void (*f)(void*, int, void*);
  *(void**)&f = fn;
  f(request, result, arg);
}

// runtime/cgo installs Go's handlers through sigaction. This one only reads: the host's handlers stay as they are, in every
// thread and at every moment, and Go believes what it asked for. Hidden, so that only this object sees it.
int __sigaction(int sig, const struct sigaction* act, struct sigaction* old);
__attribute__((visibility("hidden"))) int sigaction(int sig, const struct sigaction* act, struct sigaction* old) {
  (void)act;
  return __sigaction(sig, NULL, old);
}

// Go's exports have no const and take no functions: these say what core_table.h promises.
static int simulate(const struct hccl_item* items, size_t n, float* microseconds) {
  return hccl_core_simulate((struct hccl_item*)items, n, microseconds);
}

static int stream_host_func(void* stream, void (*fn)(void*), void* arg) {
  return hccl_core_stream_host_func(stream, *(void**)&fn, arg);
}

static int request_start(const struct hccl_item* item, void** request) {
  return hccl_core_request_start((struct hccl_item*)item, request);
}

static int request_wait(void* const* requests, size_t n, int64_t limit, size_t* index) {
  return hccl_core_request_wait((void**)requests, n, limit, index);
}

static int request_notify(void* request, void (*fn)(void*, int, void*), void* arg) {
  return hccl_core_request_notify(request, *(void**)&fn, arg);
}

static struct hccl_core_table table = {
  .version = HCCL_TABLE_VERSION,
  .size = sizeof table,
  .attach = hccl_core_attach,
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
  .comm_limit = hccl_core_comm_limit,
  .stream_create = hccl_core_stream_create,
  .stream_known = hccl_core_stream_known,
  .stream_destroy = hccl_core_stream_destroy,
  .stream_synchronize = hccl_core_stream_synchronize,
  .stream_query = hccl_core_stream_query,
  .stream_host_func = stream_host_func,
  .stream_wait_event = hccl_core_stream_wait_event,
  .event_create = hccl_core_event_create,
  .event_destroy = hccl_core_event_destroy,
  .event_record = hccl_core_event_record,
  .event_synchronize = hccl_core_event_synchronize,
  .event_query = hccl_core_event_query,
  .event_elapsed = hccl_core_event_elapsed,
  .request_start = request_start,
  .request_wait = request_wait,
  .request_status = hccl_core_request_status,
  .request_notify = request_notify,
  .request_cancel = hccl_core_request_cancel,
  .request_free = hccl_core_request_free,
};

__attribute__((visibility("default"))) const struct hccl_core_table* hccl_core_open(const struct hccl_services* s) {
  if (s == NULL || s->version != HCCL_TABLE_VERSION) return NULL;
  services = s;
  hccl_core_start();
  *(void**)&table.fast = hccl_core_fast();
  return &table;
}
