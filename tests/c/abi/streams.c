/* Streams and events as the shim sees them: what NULL, default streams, garbage and stale handles answer, and what the core is told. */
#include "test.h"

static cudaStream_t stream_at(unsigned long long n) { return (cudaStream_t)(size_t)n; }
static cudaEvent_t event_at(unsigned long long n) { return (cudaEvent_t)(size_t)n; }

static void called(int what, const void* stream, const void* event) {
  CHECK(fake()->stream_call == what, "call %d", fake()->stream_call);
  CHECK(fake()->stream == stream && fake()->event == event, "on %p and %p", fake()->stream, fake()->event);
  fake()->stream_call = 0;
}

static void count(void* p) { ++*(int*)p; }

static void refused_stream(cudaStream_t s, cudaEvent_t e, const char* word) {
  int n = 0;
  REFUSED(word, NULL, hcclStreamDestroy(s));
  if ((size_t)s <= 2) return;
  REFUSED(word, NULL, hcclStreamSynchronize(s));
  REFUSED(word, NULL, hcclStreamQuery(s));
  REFUSED(word, NULL, hcclStreamLaunchHostFunc(s, count, &n));
  REFUSED(word, NULL, hcclStreamWaitEvent(s, e));
  REFUSED(word, NULL, hcclEventRecord(e, s));
  CHECK(n == 0 && fake()->stream_call == 0, "the core was asked");
}

static void refused_event(cudaEvent_t e, cudaStream_t s, cudaEvent_t good, const char* word) {
  float ms;
  REFUSED(word, NULL, hcclStreamWaitEvent(s, e));
  REFUSED(word, NULL, hcclEventRecord(e, s));
  REFUSED(word, NULL, hcclEventSynchronize(e));
  REFUSED(word, NULL, hcclEventQuery(e));
  REFUSED(word, NULL, hcclEventElapsedTime(&ms, e, good));
  REFUSED(word, NULL, hcclEventElapsedTime(&ms, good, e));
  if (e != NULL) REFUSED(word, NULL, hcclEventDestroy(e));
  CHECK(fake()->stream_call == 0, "the core was asked");
}

static void test_handles(void) {
  cudaStream_t s = stream_at(1);
  cudaEvent_t e = event_at(1);
  int n = 0;
  float ms = 0;
  REFUSED("stream is NULL", NULL, hcclStreamCreate(NULL));
  REFUSED("event is NULL", NULL, hcclEventCreate(NULL));
  MUST(hcclStreamDestroy(NULL));
  MUST(hcclEventDestroy(NULL));
  MUST(hcclEventCreate(&e));
  MUST(hcclStreamCreate(&s));
  refused_stream(stream_at(1), e, "is no stream");
  refused_stream(stream_at(2), e, "is no stream");
  refused_stream(stream_at((size_t)&s), e, "is no stream");
  refused_stream(stream_at((size_t)e), e, "is no stream");
  refused_event(NULL, s, e, "is NULL");
  refused_event(event_at(7), s, e, "is no event");
  refused_event(event_at((size_t)s), s, e, "is no event");
  REFUSED("fn is NULL", NULL, hcclStreamLaunchHostFunc(s, NULL, &n));
  REFUSED("milliseconds is NULL", NULL, hcclEventElapsedTime(NULL, e, e));

  MUST(hcclStreamLaunchHostFunc(s, count, &n));
  called(4, s, NULL);
  CHECK(n == 1, "%d", n);
  MUST(hcclEventRecord(e, s));
  called(7, s, e);
  MUST(hcclStreamWaitEvent(s, e));
  called(5, s, e);
  MUST(hcclStreamSynchronize(s));
  called(2, s, NULL);
  MUST(hcclEventSynchronize(e));
  called(8, NULL, e);
  MUST(hcclEventElapsedTime(&ms, e, e));
  called(10, e, e);
  CHECK(ms == 2.5f, "%g", (double)ms);
  fake()->answer = ncclInProgress;
  WANT(ncclInProgress, hcclStreamQuery(s));
  called(3, s, NULL);
  WANT(ncclInProgress, hcclEventQuery(e));
  called(9, NULL, e);
  fake()->answer = ncclSuccess;
  MUST(hcclStreamDestroy(s));
  called(1, s, NULL);
  MUST(hcclEventDestroy(e));
  called(6, NULL, e);
}

/* The NULL stream and its two other names: all is done on it, its functions run here, its waits wait here. */
static void test_null(void) {
  cudaEvent_t e;
  MUST(hcclEventCreate(&e));
  for (unsigned long long k = 0; k < 3; k++) {
    int n = 0;
    MUST(hcclStreamSynchronize(stream_at(k)));
    MUST(hcclStreamQuery(stream_at(k)));
    MUST(hcclStreamLaunchHostFunc(stream_at(k), count, &n));
    CHECK(n == 1, "%d", n);
    CHECK(fake()->stream_call == 0, "the core was asked");
    MUST(hcclEventRecord(e, stream_at(k)));
    called(7, NULL, e);
    MUST(hcclStreamWaitEvent(stream_at(k), e));
    called(8, NULL, e);
  }
}

/* A call tells the core its stream, and where a factor is to be read on it; in a group, too. */
static void test_calls(void) {
  ncclComm_t c = make(2, 0);
  cudaStream_t s, stale;
  ncclRedOp_t op;
  float a[4] = {0}, b[4], factor = 3;
  uint64_t counts[2] = {1, 1};
  MUST(hcclStreamCreate(&stale));
  MUST(hcclStreamCreate(&s));
  REFUSED("was destroyed", c, ncclAllReduce(a, b, 1, ncclFloat, ncclSum, c, stale));
  REFUSED("was destroyed", c, ncclSend(a, 1, ncclFloat, 1, c, stale));
  REFUSED("was destroyed", c, hcclAllGatherV(a, b, counts, NULL, ncclFloat, c, stale));
  MUST(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarDevice, c));
  MUST(ncclAllReduce(a, b, 1, ncclFloat, op, c, s));
  CHECK(fake()->items[0].item.stream == (void*)s && fake()->items[0].item.factor == &factor, "stream or factor");
  MUST(ncclAllReduce(a, b, 1, ncclFloat, op, c, NULL));
  CHECK(fake()->items[0].item.stream == NULL && fake()->items[0].item.factor == NULL, "the factor was not read");
  MUST(ncclGroupStart());
  MUST(ncclSend(a, 1, ncclFloat, 1, c, s));
  MUST(ncclRecv(b, 1, ncclFloat, 1, c, NULL));
  MUST(ncclGroupEnd());
  CHECK(fake()->items[0].item.stream == (void*)s && fake()->items[1].item.stream == NULL, "streams of messages");
  MUST(hcclAllGatherV(a, b, counts, NULL, ncclFloat, c, s));
  CHECK(fake()->items[0].item.stream == (void*)s, "stream of a V form");
  MUST(hcclReduceScatterV(a, b, counts, NULL, ncclFloat, ncclSum, c, s));
  CHECK(fake()->items[0].item.stream == (void*)s, "stream of a V form");
  MUST(hcclAlltoAllV(a, counts, NULL, b, counts, NULL, ncclFloat, c, s));
  CHECK(fake()->items[0].item.stream == (void*)s, "stream of a V form");
}

static void test_fork(void) {
  cudaStream_t s;
  MUST(hcclStreamCreate(&s));
  pid_t child = fork();
  if (child == 0) {
    cudaStream_t other;
    faults = 0;
    WANT(ncclInvalidUsage, hcclStreamSynchronize(s));
    CHECK(strstr(ncclGetLastError(NULL), "forked") != NULL, "\"%s\"", ncclGetLastError(NULL));
    WANT(ncclInvalidUsage, hcclStreamCreate(&other));
    CHECK(other == NULL, "a stream in a forked child");
    fflush(stdout);
    _exit(faults != 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0, "the child ended with %x", status);
}

int main(void) {
  test_handles();
  test_null();
  test_calls();
  test_fork();
  return test_end();
}
