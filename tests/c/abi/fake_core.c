// A core that does nothing but record: built as libhccl_core.so into a folder of its own, beside a copy of the shim.
#define _GNU_SOURCE
#include "fake_core.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // guards what calls record; what a test sets, it sets between calls
static struct fake state;
struct fake* hccl_fake(void) { return &state; }

__attribute__((constructor)) static void look_around(int argc, char** argv) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  state.timer_slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  state.signals_blocked = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) && sigismember(&mask, SIGURG) &&
                          sigismember(&mask, SIGPROF) && sigismember(&mask, SIGALRM) && sigismember(&mask, SIGRTMAX);
  static const char* const names[] = {"GODEBUG=", "GOMAXPROCS=", "GOGC=", "GOMEMLIMIT=", "GOTRACEBACK="};
  for (char** p = argv + argc + 1; *p != NULL; p++)
    for (int k = 0; k < 5; k++) state.go_entries += strncmp(*p, names[k], strlen(names[k])) == 0;
}

static void word(char* to, const char* from) {
  to[0] = 0;
  if (from != NULL) strncat(to, from, FAKE_WORD - 1);
}
static void counts(uint64_t* to, const uint64_t* from, int n) {
  if (from != NULL) memcpy(to, from, sizeof *to * (size_t)(n < FAKE_RANKS ? n : FAKE_RANKS));
}

static void record(int* calls, const struct hccl_item* items, size_t n) {
  pthread_mutex_lock(&mu);
  ++*calls;
  state.count = (int)n;
  for (size_t k = 0; k < n && k < FAKE_ITEMS; k++) {
    struct fake_item* f = &state.items[k];
    f->item = items[k];
    word(f->algo, items[k].algo);
    word(f->name, items[k].name);
    counts(f->rcounts, items[k].rcounts, items[k].nranks);
    counts(f->rdispls, items[k].rdispls, items[k].nranks);
    counts(f->scounts, items[k].scounts, items[k].nranks);
    counts(f->sdispls, items[k].sdispls, items[k].nranks);
  }
  pthread_mutex_unlock(&mu);
}

static int enqueue(struct hccl_item* items, size_t n) {
  record(&state.enqueued, items, n);
  for (size_t k = 0; k < n; k++) {
    struct hccl_item* i = &items[k];
    i->result = state.answer;
    if (state.answer != 0 && state.answer != 7) state.services->error(i->comm, "the fake core refuses", 0);
    if (i->kind == HCCL_ITEM_CALL || i->comm == NULL || state.answer != 0 || state.not_ready) continue;
    if (i->kind == HCCL_ITEM_INIT) state.services->ready(i->comm, i->rank, i->nranks, state.hot);
    else state.services->ready(i->comm, 0, 1, state.hot); // a split makes communicators of one
  }
  return state.answer;
}

static int fast(void* hot, const struct hccl_item* item) {
  if (hot != state.hot) abort();
  record(&state.fast, item, 1);
  if (state.in_fast != NULL) state.in_fast();
  return item->count < 100 ? 0 : -1;
}

static int simulate(const struct hccl_item* items, size_t n, float* microseconds) {
  record(&state.simulated, items, n);
  *microseconds = 12.5f;
  return 0;
}

static int finalize(uint64_t id) {
  (void)id;
  state.finalized++;
  return 0;
}
static int destroy(uint64_t id) {
  state.destroyed++;
  state.ended = id;
  return 0;
}
static int abort_(uint64_t id) {
  state.aborted++;
  state.ended = id;
  return 0;
}
static int async_error(uint64_t id, int* found) {
  (void)id;
  *found = state.async;
  return 0;
}
static int mem_alloc(void** out, size_t size) { return (*out = malloc(size)) != NULL ? 0 : 2; }
static int mem_free(void* p) {
  free(p);
  return 0;
}
static int comm_register(uint64_t id, void* p, size_t size, void** handle) {
  (void)id, (void)size;
  *handle = p;
  return 0;
}
static int comm_deregister(uint64_t id, void* handle) {
  (void)id, (void)handle;
  return 0;
}
static int mem_stats(uint64_t id, int stat, uint64_t* value) {
  (void)id;
  *value = 1000 + (uint64_t)stat;
  return 0;
}

static int comm_limit(uint64_t id, int64_t set, int64_t* get) {
  (void)id;
  if (get != NULL) *get = state.limit;
  else state.limit = set;
  return 0;
}

/* Streams and events: numbers from 1, of which the last that was made is alive. What is done with one is noted. */
static int handle_new(void** out, unsigned long long mark) {
  *out = (void*)(uintptr_t)(mark << HCCL_HANDLE_SHIFT | (unsigned long long)++state.streams);
  return 0;
}
static int stream_create(void** out) { return handle_new(out, HCCL_STREAM_MARK); }
static int event_create(void** out) { return handle_new(out, HCCL_EVENT_MARK); }
static int note(void* first, void* second, int what) {
  state.stream_call = what, state.stream = first, state.event = second;
  return state.answer;
}
static int stream_known(void* s) { return ((uintptr_t)s & 0xffff) == (uintptr_t)state.streams ? 0 : 4; }
static int stream_destroy(void* s) { return note(s, NULL, 1); }
static int stream_synchronize(void* s) { return note(s, NULL, 2); }
static int stream_query(void* s) { return note(s, NULL, 3); }
static int stream_host_func(void* s, void (*fn)(void*), void* arg) {
  fn(arg);
  return note(s, NULL, 4);
}
static int stream_wait_event(void* s, void* e) { return note(s, e, 5); }
static int event_destroy(void* e) { return note(NULL, e, 6); }
static int event_record(void* e, void* s) { return note(s, e, 7); }
static int event_synchronize(void* e) { return note(NULL, e, 8); }
static int event_query(void* e) { return note(NULL, e, 9); }
static int event_elapsed(void* start, void* end, float* milliseconds) {
  *milliseconds = 2.5f;
  return note(start, end, 10);
}

/* Requests: each is over when it is made, unless answer says otherwise. */
static int request_start(const struct hccl_item* item, void** out) {
  record(&state.started, item, 1);
  return state.answer != 0 && state.answer != 7 ? state.answer : handle_new(out, HCCL_REQUEST_MARK);
}
static int request_wait(void* const* requests, size_t n, int64_t limit, size_t* index) {
  state.waited = n, state.limit = limit;
  for (size_t k = 0; k < n; k++) {
    if (requests[k] == NULL || index == NULL) continue;
    *index = k;
    break;
  }
  return state.answer;
}
static int request_status(void* r, struct hccl_status* status) {
  if (status != NULL) status->source = 5;
  if (state.answer != 0 && state.answer != 7) state.services->error(NULL, "the fake core's request failed", 0);
  return note(r, NULL, 20);
}
static int request_notify(void* r, void (*fn)(void*, int, void*), void* arg) {
  fn(r, 6, arg);
  return note(r, NULL, 21);
}
static int request_cancel(void* r) { return note(r, NULL, 22); }
static int request_free(void* r) { return note(r, NULL, 23); }

static void attach(int threads) { state.attached = threads; }

static const struct hccl_core_table table = {
  HCCL_TABLE_VERSION, sizeof table, attach, fast, enqueue, simulate, finalize, destroy, abort_,
  async_error,        mem_alloc,    mem_free,  comm_register, comm_deregister, mem_stats, comm_limit,
  stream_create, stream_known, stream_destroy, stream_synchronize, stream_query, stream_host_func, stream_wait_event,
  event_create, event_destroy, event_record, event_synchronize, event_query, event_elapsed,
  request_start, request_wait, request_status, request_notify, request_cancel, request_free,
};

const struct hccl_core_table* hccl_core_open(const struct hccl_services* services) {
#ifdef FAKE_OTHER_BUILD
  (void)services;
  return NULL;
#else
  state.services = services;
  return &table;
#endif
}
