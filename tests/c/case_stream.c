/* Streams of host memory: order, several communicators and streams, groups over both, events, host functions, progress. */
#include "case_ops.h"

static cudaStream_t stream_new(void) {
  cudaStream_t s = NULL;
  MUST(NULL, hcclStreamCreate(&s));
  return s;
}
static cudaEvent_t event_new(void) {
  cudaEvent_t e = NULL;
  MUST(NULL, hcclEventCreate(&e));
  return e;
}

/* A function that holds its stream up until the gate is opened. */
struct gate { _Atomic int open; };
static void hold(void* p) {
  struct gate* g = (struct gate*)p;
  while (!g->open) futex_wait(&g->open, 0);
}
static void open_gate(struct gate* g) {
  g->open = 1;
  futex_wake(&g->open);
}

/* An all-reduce in flight, checked by a host function behind it: so when it is reached, and in its order. */
struct flight { float *s, *d; size_t count; int salt; _Atomic int* landed; int number; };

static void land(void* p) {
  struct flight* f = (struct flight*)p;
  int number = atomic_fetch_add(f->landed, 1);
  CHECK(number == f->number, "result %d was there as number %d of its stream", f->number, number);
  for (size_t i = 0; i < f->count; i++) {
    float want = total(ranks, i) + (float)(ranks * f->salt);
    if (f->d[i] != want) {
      FAULT("element %zu of result %d is %g, not %g", i, f->number, (double)f->d[i], (double)want);
      break;
    }
  }
  free(f->s), free(f->d), free(f);
}
static void start(ncclComm_t c, cudaStream_t s, size_t count, int salt, _Atomic int* landed, int number, struct flight** out) {
  struct flight* f = (struct flight*)calloc(1, sizeof *f);
  f->s = floats(count), f->d = floats(count), f->count = count, f->salt = salt, f->landed = landed, f->number = number;
  for (size_t i = 0; i < count; i++) f->s[i] = value(me, i) + (float)salt;
  blank(f->d, count);
  MUST(c, ncclAllReduce(f->s, f->d, count, ncclFloat32, ncclSum, c, s));
  *out = f;
}
static void fly(ncclComm_t c, cudaStream_t s, size_t count, int salt, _Atomic int* landed, int number) {
  struct flight* f;
  start(c, s, count, salt, landed, number, &f);
  MUST(NULL, hcclStreamLaunchHostFunc(s, land, f));
}

/* ---- several communicators on several streams, in turn, of all sizes; calls on NULL between them ---- */

static void order_body(void) {
  enum { COMMS = 3, STREAMS = 3 };
  ncclComm_t c[COMMS];
  cudaStream_t s[STREAMS];
  static _Atomic int landed[STREAMS];
  int sent[STREAMS] = {0};
  unsigned seed = 5; /* the same on all ranks */
  for (int k = 0; k < COMMS; k++) c[k] = comm_of(k, ranks, me);
  for (int k = 0; k < STREAMS; k++) s[k] = stream_new();
  for (int i = 0; i < times(300, 5000); i++) {
    int which = rand_r(&seed) % COMMS, on = rand_r(&seed) % (STREAMS + 1);
    size_t count = (size_t)rand_r(&seed) % (rand_r(&seed) % 8 == 0 ? 200000 : 1500) + 1;
    NOTE("call %d, of %zu on communicator %d, stream %d", i, count, which, on);
    if (on == STREAMS) MUST(c[which], sum_checked(c[which], count));
    else fly(c[which], s[on], count, i % 50, &landed[on], sent[on]++);
  }
  for (int k = 0; k < STREAMS; k++) {
    NOTE("synchronize %d", k);
    MUST(NULL, hcclStreamSynchronize(s[k]));
    CHECK(landed[k] == sent[k], "%d of %d results", landed[k], sent[k]);
    MUST(NULL, hcclStreamQuery(s[k]));
    MUST(NULL, hcclStreamDestroy(s[k]));
  }
  for (int k = 0; k < COMMS; k++) MUST(c[k], ncclCommDestroy(c[k]));
}

/* ---- C87: two communicators in opposite orders, each on a stream of its own ---- */

static void crossed_body(void) {
  ncclComm_t c[2] = {comm_of(0, ranks, me), comm_of(1, ranks, me)};
  cudaStream_t s[2] = {stream_new(), stream_new()};
  static _Atomic int landed[2];
  for (int i = 0; i < times(60, 1000); i++) {
    size_t count = i % 10 == 9 ? 2 << 20 : 256;
    NOTE("pair %d of %zu", i, count);
    for (int k = 0; k < 2; k++) {
      int which = k ^ (me & 1);
      fly(c[which], s[which], count, i % 50, &landed[which], i);
    }
    if (count > 256) MUST(NULL, hcclStreamSynchronize(s[0])); /* bounds the memory in flight */
  }
  for (int k = 0; k < 2; k++) MUST(NULL, hcclStreamSynchronize(s[k]));
  for (int k = 0; k < 2; k++) MUST(c[k], ncclCommDestroy(c[k]));
}

/* ---- a call returns while its stream is held up; the next on the communicator waits for it, on whatever stream ---- */

static void held_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t a = stream_new(), b = stream_new();
  static struct gate gate;
  static _Atomic int landed, other;
  struct flight* f;
  NOTE("a held stream");
  MUST(NULL, hcclStreamLaunchHostFunc(a, hold, &gate));
  start(c, a, 1000, 1, &landed, 0, &f);
  fly(c, b, 1000, 2, &other, 0);
  CHECK(f->d[0] == -7, "a call ran before its stream had come to it");
  WANT(ncclInProgress, NULL, hcclStreamQuery(a));
  WANT(ncclInProgress, NULL, hcclStreamQuery(b));
  ncclResult_t state;
  MUST(c, ncclCommGetAsyncError(c, &state));
  CHECK(state == ncclSuccess, "queued work makes the state %d", (int)state);
  open_gate(&gate);
  MUST(c, sum_checked(c, 10)); /* on NULL, after both */
  CHECK(f->d[0] != -7, "a call on NULL overtook");
  MUST(NULL, hcclStreamLaunchHostFunc(a, land, f));
  MUST(NULL, hcclStreamSynchronize(a));
  MUST(NULL, hcclStreamSynchronize(b));
  CHECK(landed == 1 && other == 1, "%d and %d results", landed, other);
  MUST(c, ncclCommDestroy(c));
}

/* ---- groups over communicators and streams, with messages, V forms whose arrays go at once, and a part on NULL ---- */

static void groups_body(void) {
  ncclComm_t c[2] = {comm_of(0, ranks, me), comm_of(1, ranks, me)};
  cudaStream_t s[2] = {stream_new(), stream_new()};
  int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  size_t count = 5000;
  float *in = floats(count), *sum = floats(count), *from = floats(count), *all = floats(count * (size_t)ranks), *now = floats(count);
  fill(in, me, 0, count);
  for (int i = 0; i < 20; i++) {
    NOTE("group %d", i);
    uint64_t* counts = (uint64_t*)malloc((size_t)ranks * sizeof *counts);
    for (int r = 0; r < ranks; r++) counts[r] = count;
    blank(sum, count), blank(from, count), blank(all, count * (size_t)ranks), blank(now, count);
    MUST(NULL, ncclGroupStart());
    MUST(c[0], ncclAllReduce(in, sum, count, ncclFloat32, ncclSum, c[0], s[0]));
    MUST(c[1], ncclSend(in, count, ncclFloat32, next, c[1], s[1]));
    MUST(c[1], ncclRecv(from, count, ncclFloat32, before, c[1], s[1]));
    MUST(c[1], hcclAllGatherV(in, all, counts, NULL, ncclFloat32, c[1], s[i % 2]));
    if (i % 3 == 2) MUST(c[0], ncclAllReduce(in, now, count, ncclFloat32, ncclSum, c[0], NULL));
    MUST(NULL, ncclGroupEnd());
    memset(counts, 0xff, (size_t)ranks * sizeof *counts);
    free(counts);
    if (i % 3 == 2) same("all-reduce on NULL of a group", now, -ranks, 0, count);
    else MUST(NULL, hcclStreamSynchronize(s[(i + 1) % 2])); /* either one has all of the group behind it */
    same("all-reduce", sum, -ranks, 0, count);
    same("message", from, before, 0, count);
    for (int r = 0; r < ranks; r++) same("all-gather-v", all + (size_t)r * count, r, 0, count);
  }
  MUST(NULL, hcclStreamSynchronize(s[0]));
  MUST(c[0], ncclCommDestroy(c[0]));
  MUST(c[1], ncclCommDestroy(c[1]));
}

/* ---- events: order of two streams, time, states ---- */

static void set_word(void* p) { *(int*)p = 1; }
static void events_body(void) {
  cudaStream_t a = stream_new(), b = stream_new();
  cudaEvent_t from = event_new(), to = event_new();
  static struct gate gate;
  int first = 0, second = 0;
  float ms = -1;
  double before = now();
  WANT(ncclInvalidArgument, NULL, hcclEventElapsedTime(&ms, from, to));
  SAYS(NULL, "never recorded");
  MUST(NULL, hcclEventQuery(from));
  MUST(NULL, hcclEventRecord(from, NULL));
  MUST(NULL, hcclStreamLaunchHostFunc(a, hold, &gate));
  MUST(NULL, hcclStreamLaunchHostFunc(a, set_word, &first));
  MUST(NULL, hcclEventRecord(to, a));
  MUST(NULL, hcclStreamWaitEvent(b, to));
  MUST(NULL, hcclStreamLaunchHostFunc(b, set_word, &second));
  WANT(ncclInProgress, NULL, hcclEventQuery(to));
  WANT(ncclInProgress, NULL, hcclEventElapsedTime(&ms, from, to));
  WANT(ncclInProgress, NULL, hcclStreamQuery(b));
  sleep_for(0.02);
  CHECK(second == 0, "a stream did not wait for the event");
  open_gate(&gate);
  MUST(NULL, hcclEventSynchronize(to));
  CHECK(first == 1, "the event was reached early");
  MUST(NULL, hcclStreamSynchronize(b));
  CHECK(second == 1, "the second stream did not go on");
  MUST(NULL, hcclEventElapsedTime(&ms, from, to));
  CHECK(ms >= 19 && ms <= (now() - before) * 1e3 + 1, "%g ms", (double)ms);
  MUST(NULL, hcclEventDestroy(from));
  WANT(ncclInvalidArgument, NULL, hcclEventQuery(from));
  SAYS(NULL, "destroyed");
}

/* ---- host functions that queue more work and wait for themselves; a stale stream ---- */

struct chain { ncclComm_t c; cudaStream_t s; float x[100]; int left; _Atomic int done; ncclResult_t self; };
static void link_(void* p) {
  struct chain* k = (struct chain*)p;
  if (k->left-- == 0) {
    k->self = hcclStreamSynchronize(k->s);
    k->done = 1;
    futex_wake(&k->done);
    return;
  }
  MUST(k->c, ncclAllReduce(k->x, k->x, 100, ncclFloat32, ncclMax, k->c, k->s));
  MUST(NULL, hcclStreamLaunchHostFunc(k->s, link_, k));
}
static void read_slack(void* slack) { *(int*)slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }
static void functions_body(void) {
  static struct chain k;
  static int slack;
  k.c = comm_new(), k.s = stream_new(), k.left = 50;
  for (int i = 0; i < 100; i++) k.x[i] = (float)me;
  NOTE("a chain of host functions");
  MUST(NULL, hcclStreamLaunchHostFunc(k.s, link_, &k));
  while (!k.done) futex_wait(&k.done, 0);
  CHECK(k.self == ncclInvalidUsage, "a stream that waits for itself gave %d", (int)k.self);
  MUST(NULL, hcclStreamSynchronize(k.s));
  CHECK(k.x[99] == (float)(ranks - 1), "%g", (double)k.x[99]);
  MUST(NULL, hcclStreamLaunchHostFunc(k.s, read_slack, &slack));
  MUST(NULL, hcclStreamSynchronize(k.s));
  CHECK(slack < 1000000, "threads that run what is queued are woken %d ns late", slack);
  MUST(NULL, hcclStreamDestroy(k.s));
  WANT(ncclInvalidArgument, NULL, hcclStreamDestroy(k.s));
  WANT(ncclInvalidArgument, k.c, ncclAllReduce(k.x, k.x, 1, ncclFloat32, ncclMax, k.c, k.s));
  SAYS(k.c, "destroyed");
  MUST(k.c, ncclCommDestroy(k.c));
}

/* ---- progress while the program computes and calls nothing ---- */

static void progress_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t s = stream_new();
  static _Atomic int landed;
  double sum = 0;
  NOTE("computing");
  for (int i = 0; i < 10; i++) fly(c, s, 200000, i, &landed, i);
  for (double end = now() + 20; landed < 10 && now() < end;)
    for (int i = 0; i < 100000; i++) sum += 1.0 / (1 + sum);
  CHECK(landed == 10 && sum > 0, "%d of 10 operations went on while the program computed", landed);
  MUST(NULL, hcclStreamSynchronize(s));
  MUST(c, ncclCommDestroy(c));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "order")) return job_run(3, times(40, 600), order_body) != 0;
  if (!strcmp(what, "crossed")) return job_run(4, times(40, 600), crossed_body) != 0;
  if (!strcmp(what, "held")) return job_run(2, 40, held_body) != 0;
  if (!strcmp(what, "groups")) return job_run(4, 40, groups_body) != 0;
  if (!strcmp(what, "events")) return job_run(1, 40, events_body) != 0;
  if (!strcmp(what, "functions")) return job_run(2, 40, functions_body) != 0;
  if (!strcmp(what, "progress")) return job_run(2, 40, progress_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
