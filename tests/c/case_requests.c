/* Requests: all operations in the background, messages in any order, waits, callbacks, and what ends them. */
#include "case_ops.h"

static hcclRequest_t start(ncclComm_t c, hcclCall_t k) {
  hcclRequest_t r = NULL;
  MUST(c, hcclStart(&k, c, &r));
  return r;
}

static hcclCall_t call_of(hcclFunc_t func, const float* s, float* d, size_t count, int root) {
  hcclCall_t k = HCCL_CALL_INITIALIZER;
  k.func = func, k.type = ncclFloat32, k.send = s, k.recv = d, k.count = count, k.root = root;
  return k;
}

static hcclRequest_t send_to(ncclComm_t c, const float* s, size_t count, int peer, int tag) {
  hcclCall_t k = call_of(hcclFuncSend, s, NULL, count, peer);
  k.tag = tag;
  return start(c, k);
}
static hcclRequest_t recv_from(ncclComm_t c, float* d, size_t count, int peer, int tag) {
  hcclCall_t k = call_of(hcclFuncRecv, NULL, d, count, peer);
  k.tag = tag;
  return start(c, k);
}

/* All collectives started at once, at several sizes, beside a calculation; what is called on NULL meanwhile comes behind them. */
static void all_body(void) {
  static const size_t counts[] = {1, 1000, 70000};
  enum { LAST = SCATTER + 1, N = 3 * LAST };
  ncclComm_t c = comm_new();
  float *s[N], *d[N];
  hcclRequest_t r[N];
  for (int round = 0; round < times(4, 200); round++) {
    for (int k = 0; k < N; k++) {
      size_t count = counts[k / LAST], all = count * (size_t)ranks;
      s[k] = floats(all), d[k] = floats(all);
      fill(s[k], me, 0, all), blank(d[k], all);
      NOTE("round %d: start of %s of %zu", round, op_name[k % LAST], count);
      r[k] = start(c, call_of((hcclFunc_t)(k % LAST), s[k], d[k], count, round % ranks));
    }
    NOTE("round %d: a sum behind all", round);
    MUST(c, sum_checked(c, 10));
    for (int k = 0; k < N; k++) WANT(ncclSuccess, c, hcclRequestTest(r[k])); /* the sum was behind them */
    MUST(c, hcclRequestWaitAll(r, N, HCCL_NO_LIMIT));
    for (int k = 0; k < N; k++) {
      op_verify(k % LAST, d[k], counts[k / LAST], round % ranks, ranks, me);
      MUST(c, hcclRequestFree(r[k]));
      WANT(ncclInvalidArgument, NULL, hcclRequestTest(r[k]));
      free(s[k]), free(d[k]);
    }
  }
  MUST(c, ncclCommDestroy(c));
}

/* Rank 0 receives from all in the order in which they do not come: each sends when rank 0 has what the one behind it sent. */
static void order_body(void) {
  ncclComm_t c = comm_new();
  for (int round = 0; round < times(6, 300); round++) {
    size_t count = round % 2 ? 200000 : 10, index;
    float *b = floats(count * (size_t)ranks), token = 0;
    NOTE("round %d", round);
    if (me == 0) {
      hcclRequest_t r[RANKS] = {NULL};
      for (int k = 1; k < ranks; k++) r[k] = recv_from(c, b + (size_t)k * count, count, k, 5);
      for (int k = ranks - 1; k > 0; k--) {
        MUST(c, hcclRequestWaitAny(r, (size_t)ranks, 20000, &index));
        CHECK(index == (size_t)k, "rank %zu came, not %d", index, k);
        same("message", b + (size_t)k * count, k, 0, count);
        hcclStatus_t st;
        MUST(c, hcclRequestGetStatus(r[k], &st));
        CHECK(st.source == k && st.tag == 5 && st.bytes == count * 4, "status: %d, %d", st.source, st.tag);
        MUST(c, hcclRequestFree(r[k]));
        r[k] = NULL;
        if (k > 1) MUST(c, ncclSend(&token, 1, ncclFloat32, k - 1, c, NULL)); /* beside the receives that wait */
      }
    } else {
      if (me < ranks - 1) MUST(c, ncclRecv(&token, 1, ncclFloat32, 0, c, NULL));
      fill(b, me, 0, count);
      MUST(c, hcclSend(b, count, ncclFloat32, 0, 5, c, NULL));
    }
    MUST(c, sum_checked(c, 100));
    free(b);
  }
  MUST(c, ncclCommDestroy(c));
}

static _Atomic int calls, wrong;
static ncclComm_t comm_of_calls;

/* Runs on a thread of the library, and uses it: all ranks add in their callbacks. */
static void called(hcclRequest_t r, ncclResult_t result, void* arg) {
  float one = 1, sum = 0;
  if (result != ncclSuccess || hcclRequestTest(r) != ncclSuccess || (int)(size_t)arg != calls) wrong++;
  if (ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, comm_of_calls, NULL) != ncclSuccess || sum != (float)ranks) wrong++;
  calls++;
}

/* Callbacks, in order; waits that run out; progress while nobody is in the library. */
static void waits_body(void) {
  enum { N = 20 };
  ncclComm_t c = comm_new(), other = comm_of(1, ranks, me);
  float *s = floats(100000), *d = floats(100000 * N);
  hcclRequest_t r[N], late;
  size_t index = 0;
  comm_of_calls = other;
  fill(s, me, 0, 100000);
  NOTE("a receive that waits");
  late = recv_from(c, d, 10, (me + 1) % ranks, 1);
  WANT(ncclInProgress, c, hcclRequestTest(late));
  WANT(ncclInProgress, c, hcclRequestWait(late, 30));
  WANT(ncclInProgress, c, hcclRequestWaitAny(&late, 1, 30, &index));
  CHECK(index == 1, "index %zu", index);
  meet();
  hcclRequest_t sent = send_to(c, s, 10, (me + ranks - 1) % ranks, 1);
  MUST(c, hcclRequestWait(sent, HCCL_NO_LIMIT));
  MUST(c, hcclRequestFree(sent));
  MUST(c, hcclRequestWait(late, HCCL_NO_LIMIT));
  same("message", d, (me + 1) % ranks, 0, 10);
  MUST(c, hcclRequestFree(late));
  NOTE("sums with callbacks");
  for (int k = 0; k < N; k++) {
    r[k] = start(c, call_of(hcclFuncAllReduce, s, d + (size_t)k * 100000, 100000, 0));
    MUST(c, hcclRequestSetCallback(r[k], called, (void*)(size_t)k));
  }
  double from = now();
  while (calls < N && now() - from < 20) sched_yield(); /* the program is elsewhere */
  CHECK(calls == N && wrong == 0, "%d callbacks of %d, %d wrong", calls, N, wrong);
  for (int k = 0; k < N; k++) {
    WANT(ncclSuccess, c, hcclRequestTest(r[k]));
    same("sum", d + (size_t)k * 100000, -ranks, 0, 100000);
    MUST(c, hcclRequestFree(r[k]));
  }
  NOTE("handles that are let go of at once");
  for (int k = 0; k < N; k++) MUST(c, hcclRequestFree(start(c, call_of(hcclFuncAllReduce, s, d + (size_t)k * 100000, 1000, 0))));
  MUST(c, ncclCommFinalize(c)); /* waits for them */
  for (int k = 0; k < N; k++) same("sum", d + (size_t)k * 100000, -ranks, 0, 1000);
  MUST(c, ncclCommDestroy(other));
  MUST(c, ncclCommDestroy(c));
  free(s), free(d);
}

/* A receive that is taken back or runs out of time ends alone; a rank that dies ends all, with its name. */
static void end_body(void) {
  ncclComm_t c = comm_new();
  float *s = floats(100000), *d = floats(300000);
  NOTE("taken back");
  hcclRequest_t r = recv_from(c, d, 10, HCCL_ANY_SOURCE, HCCL_ANY_TAG);
  MUST(c, hcclRequestCancel(r));
  WANT(ncclInvalidUsage, NULL, hcclRequestWait(r, 5000));
  CHECK(strstr(hcclRequestGetLastError(r), "cancelled") != NULL, "\"%s\"", hcclRequestGetLastError(r));
  MUST(c, hcclRequestFree(r));
  NOTE("out of time");
  hcclCall_t k = call_of(hcclFuncRecv, NULL, d, 10, (me + 1) % ranks);
  k.timeout = 100, k.tag = 9;
  r = start(c, k);
  WANT(ncclTimeout, NULL, hcclRequestWait(r, 5000));
  CHECK(strstr(hcclRequestGetLastError(r), "tag 9") != NULL, "\"%s\"", hcclRequestGetLastError(r));
  MUST(c, hcclRequestFree(r));
  MUST(c, sum_checked(c, 3000));
  meet();
  NOTE("rank 1 dies");
  if (me == 1) {
    job->doomed[me] = 1;
    raise(SIGKILL);
  }
  wait_ended(1);
  hcclRequest_t list[3];
  double from = now();
  list[0] = recv_from(c, d, 10, 1, 3);
  list[1] = recv_from(c, d + 10, 10, HCCL_ANY_SOURCE, 4);
  if (hcclStart(&(hcclCall_t){.size = 0}, c, &list[2]) != ncclInvalidArgument) FAULT("an empty call was taken");
  k = call_of(hcclFuncAllReduce, s, d + 100, 100000, 0);
  int n = hcclStart(&k, c, &list[2]) == ncclSuccess ? 3 : 2; /* the communicator may have failed by now */
  for (int i = 0; i < n; i++) {
    WANT(ncclRemoteError, NULL, hcclRequestWait(list[i], 10000));
    CHECK(strstr(hcclRequestGetLastError(list[i]), "rank 1 is gone") != NULL, "\"%s\"", hcclRequestGetLastError(list[i]));
  }
  WITHIN(5, from);
  meet_of(ranks - 1);
  MUST(NULL, ncclCommAbort(c));
  for (int i = 0; i < n; i++) WANT(ncclRemoteError, NULL, hcclRequestTest(list[i])); /* longer than its communicator */
  free(s), free(d);
}

/* Abort and Destroy, from another thread than the one that waits. */
static ncclComm_t ending;
static int by_abort;
static void* end_it(void* arg) {
  (void)arg;
  sleep_for(0.2);
  MUST(NULL, by_abort ? ncclCommAbort(ending) : ncclCommDestroy(ending));
  return NULL;
}

static void abort_body(void) {
  for (by_abort = 0; by_abort < 2; by_abort++) {
    pthread_t t;
    float b[10];
    ending = comm_of(by_abort, ranks, me);
    hcclRequest_t r = recv_from(ending, b, 10, (me + 1) % ranks, 1);
    pthread_create(&t, NULL, end_it, NULL);
    NOTE("a wait that %s ends", by_abort ? "abort" : "destroy");
    double from = now();
    ncclResult_t got = hcclRequestWait(r, HCCL_NO_LIMIT);
    WITHIN(3, from);
    const char* text = hcclRequestGetLastError(r);
    CHECK(got == ncclInvalidUsage || got == ncclRemoteError, "result %d: %s", got, text); /* the other rank may be first */
    CHECK(strstr(text, by_abort ? "aborted" : "destroyed") != NULL, "\"%s\"", text);
    pthread_join(t, NULL);
    meet();
    MUST(NULL, hcclRequestFree(r));
  }
}

static void* talk(void* arg) { /* messages around the ring by requests, one thread per rank */
  ncclComm_t c = (ncclComm_t)arg;
  size_t most = 60000;
  float *s = floats(most), *d = floats(most);
  int next = (me + 1) % ranks, last = (me + ranks - 1) % ranks;
  for (int round = 0; round < times(150, 5000); round++) {
    size_t count = round % 5 == 0 ? most : (size_t)(round % 40);
    hcclRequest_t r[2];
    fill(s, me, (size_t)round, count);
    r[0] = recv_from(c, d, most, round % 3 ? last : HCCL_ANY_SOURCE, round), r[1] = send_to(c, s, count, next, round);
    MUST(c, hcclRequestWaitAll(r, 2, HCCL_NO_LIMIT));
    same("message beside sums", d, last, (size_t)round, count);
    MUST(c, hcclRequestFree(r[0]));
    MUST(c, hcclRequestFree(r[1]));
  }
  atomic_store(&calls, 1);
  free(s), free(d);
  return NULL;
}

/* One thread adds, small and large, while another exchanges messages as requests on the same communicator. */
static void beside_body(void) {
  ncclComm_t c = comm_new();
  pthread_t t;
  pthread_create(&t, NULL, talk, c);
  NOTE("sums beside messages");
  for (int more = 1, round = 0; more; round++) {
    int mine = !calls, sum = 0;
    MUST(c, sum_checked(c, round % 20 == 0 ? 50000 : 1 + (size_t)round % 64));
    MUST(c, ncclAllReduce(&mine, &sum, 1, ncclInt32, ncclSum, c, NULL)); /* until all have done */
    more = sum > 0;
  }
  pthread_join(t, NULL);
  MUST(c, ncclCommDestroy(c));
}

/* Many communicators with a receive that waits on each, and one wait for any of all. */
static void many_body(void) {
  enum { N = 40 };
  ncclComm_t c[N];
  hcclRequest_t r[N];
  float d[N], x = (float)me;
  for (int k = 0; k < N; k++) c[k] = comm_of(k % 8, ranks, me), meet();
  for (int k = 0; k < N; k++) r[k] = recv_from(c[k], &d[k], 1, (me + 1) % ranks, 0);
  NOTE("%d receives of %d communicators", N, N);
  for (int k = N - 1; k >= 0; k--) {
    size_t index;
    MUST(c[k], ncclSend(&x, 1, ncclFloat32, (me + ranks - 1) % ranks, c[k], NULL));
    MUST(c[k], hcclRequestWaitAny(r, N, 20000, &index));
    CHECK(index < N && d[index] == (float)((me + 1) % ranks), "communicator %zu: %g", index, (double)d[index % N]);
    MUST(NULL, hcclRequestFree(r[index])); /* a stale handle would be refused: each is over once */
    r[index] = NULL;
  }
  for (int k = 0; k < N; k++) MUST(c[k], ncclCommDestroy(c[k]));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "all")) return job_run(1, 30, all_body) + job_run(3, 60, all_body) != 0;
  if (!strcmp(what, "order")) return job_run(4, 30, order_body) != 0;
  if (!strcmp(what, "waits")) return job_run(2, 40, waits_body) != 0;
  if (!strcmp(what, "end")) return job_run(3, 40, end_body) != 0;
  if (!strcmp(what, "beside")) return job_run(3, 60, beside_body) != 0;
  if (!strcmp(what, "many")) return job_run(2, 60, many_body) != 0;
  if (!strcmp(what, "abort")) return job_run(2, 30, abort_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
