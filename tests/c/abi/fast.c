/* The way of small operations through table.fast: when it is taken, and how the core takes it back. */
#include "test.h"
#include <sched.h>

static float a[256], b[256];
static int word; /* its address stands for a hot state */

static ncclResult_t sum(ncclComm_t c, size_t count) { return ncclAllReduce(a, b, count, ncclFloat, ncclSum, c, NULL); }

static void test_taken(ncclComm_t c) {
  struct fake* f = fake();
  int enqueued = f->enqueued, fast = f->fast;
  MUST(sum(c, 8));
  CHECK(f->fast == fast + 1 && f->enqueued == enqueued, "a small call went the long way");
  MUST(sum(c, 200)); /* the fake's fast wants less than 100 */
  CHECK(f->fast == fast + 2 && f->enqueued == enqueued + 1, "a call that fast did not want was not enqueued");
  MUST(ncclGroupStart());
  MUST(sum(c, 8));
  MUST(sum(c, 9));
  MUST(ncclGroupEnd());
  CHECK(f->fast == fast + 2 && f->enqueued == enqueued + 2, "a group of two went the fast way");
  f->services->ready(c, 0, 2, NULL);
  MUST(sum(c, 8));
  CHECK(f->fast == fast + 2 && f->enqueued == enqueued + 3, "fast was called after it was taken back");
  f->services->ready(c, 0, 2, &word);
}

/* ready(NULL) returns only when no thread is inside. */
static int inside, go_on, taking, taken; /* atomics, by the compiler's builtins: C and C++ alike */
static void wait_inside(void) {
  __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&go_on, __ATOMIC_SEQ_CST)) sched_yield();
  CHECK(!__atomic_load_n(&taken, __ATOMIC_SEQ_CST), "hot was taken from a thread that is inside");
}
static ncclComm_t comm;
static void* call(void* p) {
  (void)p;
  MUST(sum(comm, 8));
  return NULL;
}
static void* take(void* p) {
  (void)p;
  __atomic_store_n(&taking, 1, __ATOMIC_SEQ_CST);
  fake()->services->ready(comm, 0, 2, NULL);
  __atomic_store_n(&taken, 1, __ATOMIC_SEQ_CST);
  return NULL;
}
static void* let_go(void* p) {
  (void)p;
  MUST(ncclCommDestroy(comm));
  return NULL;
}
static void taken_back(void* (*by)(void*)) {
  pthread_t caller, taker;
  inside = go_on = taking = taken = 0;
  fake()->in_fast = wait_inside;
  pthread_create(&caller, NULL, call, NULL);
  while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST)) sched_yield();
  pthread_create(&taker, NULL, by, NULL);
  while (!__atomic_load_n(&taking, __ATOMIC_SEQ_CST)) sched_yield();
  for (int k = 0; k < 1000; k++) sched_yield(); /* the taker has every chance to be wrong */
  __atomic_store_n(&go_on, 1, __ATOMIC_SEQ_CST);
  pthread_join(caller, NULL);
  pthread_join(taker, NULL);
  fake()->in_fast = NULL;
}

/* Two threads end a communicator: one lets go of the handle while the other still has to take the state back. */
static pthread_t second;
static void* take_after(void* p) {
  pthread_create(&second, NULL, let_go, NULL);
  for (int k = 0; k < 1000; k++) sched_yield();
  return take(p);
}
static void test_taken_back(void) {
  taken_back(take);
  comm = make(2, 0);
  taken_back(take_after);
  pthread_join(second, NULL);
  comm = make(2, 0);
}

/* Threads that call while others destroy and make: always an answer, never another communicator's state. */
static int stop;
static void* hammer(void* p) {
  (void)p;
  while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
    ncclComm_t c = __atomic_load_n(&comm, __ATOMIC_SEQ_CST);
    int e = (int)sum(c, 8);
    CHECK(e == ncclSuccess || e == ncclInvalidArgument, "gave %d (%s)", e, ncclGetLastError(NULL));
  }
  return NULL;
}
static void test_race(void) {
  pthread_t t[2];
  for (int k = 0; k < 2; k++) pthread_create(&t[k], NULL, hammer, NULL);
  for (int k = 0; k < 3000; k++) {
    ncclComm_t old = comm;
    __atomic_store_n(&comm, make(2, 0), __ATOMIC_SEQ_CST);
    fake()->services->ready(old, 0, 2, NULL);
    MUST(ncclCommDestroy(old));
  }
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
}

int main(void) {
  ncclComm_t first = make(2, 0);
  fake()->hot = &word;
  comm = make(2, 0);
  test_taken(comm);
  test_taken_back();
  test_race();
  MUST(ncclCommDestroy(first));
  MUST(ncclCommDestroy(comm));
  return test_end();
}
