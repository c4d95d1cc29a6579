// Requests: calls that go on in the background under a handle, a number with a mark as that of a stream (stream.h).
#include "call.h"
#include "core.h"
#include "error.h"
#include "redop.h"
#include "thread.h"

static ncclResult_t missing(const char* who, const char* what) {
  return hccl_fail(NULL, ncclInvalidArgument, "%s: %s is NULL", who, what);
}

static ncclResult_t marked(const char* who, hcclRequest_t request) {
  if (request == NULL) return missing(who, "request");
  if ((uintptr_t)request >> HCCL_HANDLE_SHIFT == HCCL_REQUEST_MARK) return ncclSuccess;
  return hccl_fail(NULL, ncclInvalidArgument, "%s: %p is no request: use what hcclStart has given", who, (void*)request);
}

// table is the core's, or NULL with the result in *e, if that is no error yet.
static const struct hccl_core_table* table(ncclResult_t* e) {
  if (*e != ncclSuccess) return NULL;
  const struct hccl_core_table* t = hccl_core();
  if (t == NULL) *e = hccl_no_core();
  return t;
}

static ncclResult_t start(const struct hccl_call* a, hcclRequest_t* request) {
  struct hccl_item item = {0};
  struct hccl_extra extra = {0};
  struct hccl_packed packed = {0};
  ncclResult_t e = hccl_fill(a, &item, &extra, &packed);
  const struct hccl_core_table* t = table(&e);
  if (t != NULL) {
    if (extra.factor != NULL) item.scale = hccl_factor(extra.factor, item.type);
    e = (ncclResult_t)t->request_start(&item, (void**)request);
  }
  hccl_packed_free(&packed);
  return e;
}

ncclResult_t hcclStart(const hcclCall_t* call, ncclComm_t comm, hcclRequest_t* request) {
  static const char who[] = "hcclStart";
  struct hccl_call a;
  if (request == NULL) return hccl_fail(comm, ncclInvalidArgument, "%s: request is NULL", who);
  *request = NULL;
  ncclResult_t e = hccl_read_call(call, comm, who, &a);
  return e == ncclSuccess ? start(&a, request) : e;
}

static ncclResult_t wait_for(const char* who, const hcclRequest_t* requests, size_t n, int64_t timeout, size_t* index) {
  ncclResult_t e = n > 0 && requests == NULL ? missing(who, "requests") : ncclSuccess;
  size_t there = 0;
  for (size_t k = 0; k < n && e == ncclSuccess; k++) {
    if (requests[k] != NULL) e = marked(who, requests[k]), there++;
  }
  if (e != ncclSuccess) return e;
  if (there == 0 && index != NULL) return hccl_fail(NULL, ncclInvalidArgument, "%s: there is no request among %zu", who, n);
  if (there == 0) return ncclSuccess;
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->request_wait((void* const*)requests, n, timeout, index) : e;
}

ncclResult_t hcclRequestWait(hcclRequest_t request, int64_t timeout) {
  static const char who[] = "hcclRequestWait";
  return request != NULL ? wait_for(who, &request, 1, timeout, NULL) : missing(who, "request");
}

ncclResult_t hcclRequestTest(hcclRequest_t request) {
  static const char who[] = "hcclRequestTest";
  return request != NULL ? wait_for(who, &request, 1, 0, NULL) : missing(who, "request");
}

ncclResult_t hcclRequestWaitAll(const hcclRequest_t* requests, size_t n, int64_t timeout) {
  return wait_for("hcclRequestWaitAll", requests, n, timeout, NULL);
}

ncclResult_t hcclRequestWaitAny(const hcclRequest_t* requests, size_t n, int64_t timeout, size_t* index) {
  static const char who[] = "hcclRequestWaitAny";
  if (index == NULL) return missing(who, "index");
  *index = n;
  return wait_for(who, requests, n, timeout, index);
}

ncclResult_t hcclRequestGetStatus(hcclRequest_t request, hcclStatus_t* status) {
  static const char who[] = "hcclRequestGetStatus";
  ncclResult_t e = status != NULL ? marked(who, request) : missing(who, "status");
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->request_status((void*)request, (struct hccl_status*)status) : e;
}

const char* hcclRequestGetLastError(hcclRequest_t request) {
  ncclResult_t e = marked("hcclRequestGetLastError", request);
  const struct hccl_core_table* t = table(&e);
  if (t != NULL) e = (ncclResult_t)t->request_status((void*)request, NULL); // keeps the text as the thread's last
  struct hccl_thread* mine = hccl_thread_if();
  return e == ncclSuccess || e == ncclInProgress || mine == NULL ? "" : mine->last.words;
}

ncclResult_t hcclRequestSetCallback(hcclRequest_t request, hcclRequestCallback_t fn, void* arg) {
  static const char who[] = "hcclRequestSetCallback";
  ncclResult_t e = fn != NULL ? marked(who, request) : missing(who, "fn");
  const struct hccl_core_table* t = table(&e);
  void (*f)(void*, int, void*);
  *(hcclRequestCallback_t*)&f = fn; // the same to the machine: a handle is a pointer, a result an int
  return t != NULL ? (ncclResult_t)t->request_notify((void*)request, f, arg) : e;
}

ncclResult_t hcclRequestCancel(hcclRequest_t request) {
  ncclResult_t e = marked("hcclRequestCancel", request);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->request_cancel((void*)request) : e;
}

ncclResult_t hcclRequestFree(hcclRequest_t request) {
  if (request == NULL) return ncclSuccess;
  ncclResult_t e = marked("hcclRequestFree", request);
  const struct hccl_core_table* t = table(&e);
  return t != NULL ? (ncclResult_t)t->request_free((void*)request) : e;
}
