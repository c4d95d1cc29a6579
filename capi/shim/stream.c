#include "stream.h"
#include "core.h"
#include "error.h"

enum { LAST_NULL = 2 }; // cudaStreamLegacy is 1 and cudaStreamPerThread 2: on host memory they mean what NULL means

static int is_null(cudaStream_t stream) { return (uintptr_t)stream <= LAST_NULL; }

static ncclResult_t missing(const char* who, const char* what) {
  return hccl_fail(NULL, ncclInvalidArgument, "%s: %s is NULL", who, what);
}

// marked tells a handle of ours from anything else, by its looks alone.
static ncclResult_t marked(ncclComm_t comm, const char* who, const void* handle, unsigned long long mark, const char* what,
                           const char* from) {
  if ((uintptr_t)handle >> HCCL_HANDLE_SHIFT == mark) return ncclSuccess;
  return hccl_fail(comm, ncclInvalidArgument, "%s: %p is no %s of host memory: use %s", who, handle, what, from);
}

static ncclResult_t marked_stream(ncclComm_t comm, const char* who, cudaStream_t stream) {
  return marked(comm, who, (const void*)stream, HCCL_STREAM_MARK, "stream", "what hcclStreamCreate has given, or NULL");
}

static ncclResult_t marked_event(const char* who, cudaEvent_t event) {
  if (event == NULL) return missing(who, "event");
  return marked(NULL, who, (const void*)event, HCCL_EVENT_MARK, "event", "what hcclEventCreate has given");
}

// table is the core's, or NULL with the result in *e, if that is no error yet.
static const struct hccl_core_table* table(ncclResult_t* e) {
  if (*e != ncclSuccess) return NULL;
  const struct hccl_core_table* t = hccl_core();
  if (t == NULL) *e = hccl_no_core();
  return t;
}

ncclResult_t hccl_take_stream(ncclComm_t comm, const char* who, cudaStream_t stream, void** taken) {
  *taken = NULL;
  if (is_null(stream)) return ncclSuccess;
  ncclResult_t e = marked_stream(comm, who, stream);
  const struct hccl_core_table* t = table(&e);
  if (t == NULL) return e;
  if (t->stream_known((void*)stream) != ncclSuccess)
    return hccl_fail(comm, ncclInvalidArgument, "%s: stream %p was destroyed", who, (void*)stream);
  *taken = (void*)stream;
  return ncclSuccess;
}

ncclResult_t hcclStreamCreate(cudaStream_t* stream) {
  ncclResult_t e = stream != NULL ? ncclSuccess : missing("hcclStreamCreate", "stream");
  if (stream != NULL) *stream = NULL;
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->stream_create((void**)stream) : e;
}

ncclResult_t hcclStreamDestroy(cudaStream_t stream) {
  if (stream == NULL) return ncclSuccess;
  ncclResult_t e = marked_stream(NULL, "hcclStreamDestroy", stream);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->stream_destroy((void*)stream) : e;
}

ncclResult_t hcclStreamSynchronize(cudaStream_t stream) {
  if (is_null(stream)) return ncclSuccess;
  ncclResult_t e = marked_stream(NULL, "hcclStreamSynchronize", stream);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->stream_synchronize((void*)stream) : e;
}

ncclResult_t hcclStreamQuery(cudaStream_t stream) {
  if (is_null(stream)) return ncclSuccess;
  ncclResult_t e = marked_stream(NULL, "hcclStreamQuery", stream);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->stream_query((void*)stream) : e;
}

ncclResult_t hcclStreamLaunchHostFunc(cudaStream_t stream, void (*fn)(void*), void* arg) {
  static const char who[] = "hcclStreamLaunchHostFunc";
  if (fn == NULL) return missing(who, "fn");
  if (is_null(stream)) {
    fn(arg);
    return ncclSuccess;
  }
  ncclResult_t e = marked_stream(NULL, who, stream);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->stream_host_func((void*)stream, fn, arg) : e;
}

ncclResult_t hcclStreamWaitEvent(cudaStream_t stream, cudaEvent_t event) {
  static const char who[] = "hcclStreamWaitEvent";
  ncclResult_t e = marked_event(who, event);
  if (e == ncclSuccess && !is_null(stream)) e = marked_stream(NULL, who, stream);
  const struct hccl_core_table* t = table(&e);
  if (t == NULL) return e;
  return (ncclResult_t)(is_null(stream) ? t->event_synchronize((void*)event) : t->stream_wait_event((void*)stream, (void*)event));
}

ncclResult_t hcclEventCreate(cudaEvent_t* event) {
  ncclResult_t e = event != NULL ? ncclSuccess : missing("hcclEventCreate", "event");
  if (event != NULL) *event = NULL;
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->event_create((void**)event) : e;
}

ncclResult_t hcclEventDestroy(cudaEvent_t event) {
  if (event == NULL) return ncclSuccess;
  ncclResult_t e = marked_event("hcclEventDestroy", event);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->event_destroy((void*)event) : e;
}

ncclResult_t hcclEventRecord(cudaEvent_t event, cudaStream_t stream) {
  static const char who[] = "hcclEventRecord";
  ncclResult_t e = marked_event(who, event);
  if (e == ncclSuccess && !is_null(stream)) e = marked_stream(NULL, who, stream);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->event_record((void*)event, is_null(stream) ? NULL : (void*)stream) : e;
}

ncclResult_t hcclEventSynchronize(cudaEvent_t event) {
  ncclResult_t e = marked_event("hcclEventSynchronize", event);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->event_synchronize((void*)event) : e;
}

ncclResult_t hcclEventQuery(cudaEvent_t event) {
  ncclResult_t e = marked_event("hcclEventQuery", event);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->event_query((void*)event) : e;
}

ncclResult_t hcclEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  static const char who[] = "hcclEventElapsedTime";
  if (milliseconds == NULL) return missing(who, "milliseconds");
  ncclResult_t e = marked_event(who, start);
  if (e == ncclSuccess) e = marked_event(who, end);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->event_elapsed((void*)start, (void*)end, milliseconds) : e;
}
