/* Communicators that are used, asked, aborted or destroyed at the wrong moment: while another thread makes them, while another ends
   them, after their making has failed. */
#include "hostile.h"

static ncclComm_t comms[8];
static ncclUniqueId id;
static int size;

static void* init(void* rank) {
  long r = (long)rank;
  (void)ncclCommInitRank(&comms[r], size, id, (int)r);
  return NULL;
}

static void make(int n) {
  pthread_t threads[8];
  size = n;
  MUST(ncclGetUniqueId(&id));
  for (long r = 0; r < n; r++) pthread_create(&threads[r], NULL, init, (void*)r);
  for (int r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

/* start makes handles of n non-blocking ranks. */
static void start(int n) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  MUST(ncclGetUniqueId(&id));
  MUST(ncclGroupStart());
  for (int r = 0; r < n; r++) MUST(ncclCommInitRankConfig(&comms[r], n, id, r, &config));
  WANT(ncclInProgress, ncclGroupEnd());
}

/* A communicator whose init call goes on in another thread: every call on it is refused with a text, and Abort ends the init. */
static void used_while_made(void) {
  pthread_t maker;
  float x = 1;
  ncclComm_t child;
  ncclResult_t state = ncclSuccess;
  size = 2;
  MUST(ncclGetUniqueId(&id));
  pthread_create(&maker, NULL, init, (void*)0);
  while (__atomic_load_n(&comms[0], __ATOMIC_ACQUIRE) == NULL) sched_yield();
  ncclComm_t comm = comms[0];
  while (state != ncclInProgress) (void)ncclCommGetAsyncError(comm, &state); /* the core does not know it at first */
  WANT(ncclInvalidUsage, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, NULL));
  CHECK(strstr(ncclGetLastError(NULL), "still being made") != NULL, "text");
  WANT(ncclInvalidUsage, ncclCommSplit(comm, 0, 0, &child, NULL));
  double began = now();
  MUST(ncclCommAbort(comm));
  pthread_join(maker, NULL);
  CHECK(now() - began < 2, "Abort of a communicator that is being made took %.1f s", now() - began);
  CHECK(comms[0] == NULL, "the init call left a handle");
}

/* A non-blocking init that fails keeps its error until somebody has asked and ended it. */
static void failed_init_is_told(void) {
  float x = 1;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  setenv("HCCL_INIT_TIMEOUT", "1", 1);
  MUST(ncclGetUniqueId(&id));
  WANT(ncclInProgress, ncclCommInitRankConfig(&comms[0], 2, id, 0, &config));
  WANT(ncclTimeout, settled(comms[0]));
  CHECK(strstr(ncclGetLastError(comms[0]), "missing: rank 1") != NULL, "text %s", ncclGetLastError(comms[0]));
  WANT(ncclTimeout, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comms[0], NULL));
  MUST(ncclCommAbort(comms[0]));
}

/* Destroy does not wait for ranks that never come. */
static void destroyed_while_made(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  MUST(ncclGetUniqueId(&id));
  WANT(ncclInProgress, ncclCommInitRankConfig(&comms[0], 2, id, 0, &config));
  double began = now();
  MUST(ncclCommDestroy(comms[0]));
  CHECK(now() - began < 2, "Destroy took %.1f s", now() - began);
}

/* One rank is aborted at any moment of the making: the others are made, or fail long before HCCL_INIT_TIMEOUT. */
static void one_gives_up(void) {
  enum { N = 4 };
  unsigned seed = 1;
  for (int k = 0; k < 40; k++) {
    start(N);
    double until = now() + (double)(rand_r(&seed) % 10000) * 1e-6;
    while (now() < until) sched_yield();
    int victim = rand_r(&seed) % N;
    MUST(ncclCommAbort(comms[victim]));
    double began = now();
    for (int r = 0; r < N; r++) {
      if (r == victim) continue;
      ncclResult_t state = settled(comms[r]);
      CHECK(state == ncclSuccess || *ncclGetLastError(comms[r]) != 0, "rank %d failed without a text", r);
    }
    CHECK(now() - began < 20, "after rank %d gave up the others waited %.1f s", victim, now() - began);
    for (int r = 0; r < N; r++)
      if (r != victim) MUST(ncclCommAbort(comms[r]));
  }
}

static void* ask(void* comm) {
  ncclResult_t state;
  while (ncclCommGetAsyncError((ncclComm_t)comm, &state) == ncclSuccess && state == ncclSuccess) {}
  return NULL;
}

static void* reduce(void* comm) {
  float x[4] = {0};
  while (ncclAllReduce(x, x, 4, ncclFloat32, ncclSum, (ncclComm_t)comm, NULL) == ncclSuccess) {}
  return NULL;
}

static void* give_up(void* comm) {
  (void)ncclCommAbort((ncclComm_t)comm);
  return NULL;
}

/* Threads ask, reduce and abort at once: nothing is taken away under any of them. */
static void ended_while_used(void) {
  for (int k = 0; k < 60; k++) {
    pthread_t threads[8];
    int n = 0;
    make(2);
    for (int r = 0; r < 2; r++) {
      pthread_create(&threads[n++], NULL, ask, comms[r]);
      pthread_create(&threads[n++], NULL, reduce, comms[r]);
    }
    for (int r = 0; r < 2; r++) {
      pthread_create(&threads[n++], NULL, give_up, comms[r]);
      pthread_create(&threads[n++], NULL, give_up, comms[r]);
    }
    while (n > 0) pthread_join(threads[--n], NULL);
  }
}

static void* receive(void* comm) {
  char byte;
  return (void*)(long)ncclRecv(&byte, 1, ncclInt8, 0, (ncclComm_t)comm, NULL);
}

/* A communicator of one rank waits for a message that it never sends itself: Abort ends even that, and so does a limit. */
static void alone(void) {
  pthread_t thread;
  void* result;
  setenv("HCCL_TIMEOUT", "3", 1);
  make(1);
  pthread_create(&thread, NULL, receive, comms[0]);
  pthread_join(thread, &result);
  WANT(ncclTimeout, (long)result);
  MUST(ncclCommDestroy(comms[0]));
  make(1);
  pthread_create(&thread, NULL, receive, comms[0]);
  sched_yield();
  double began = now();
  MUST(ncclCommAbort(comms[0]));
  pthread_join(thread, &result);
  CHECK((long)result != ncclSuccess && (long)result != ncclTimeout, "the receive gave %ld", (long)result);
  CHECK(now() - began < 2, "Abort took %.1f s", now() - began);
}

/* All-to-all-v whose counts do not fit each other, and a V form whose headers differ only in what is hashed. */
static void counts_that_differ(void) {
  float a[16] = {0}, b[32];
  uint64_t one[2] = {1, 2}, two[2] = {2, 1};
  make(2);
  MUST(ncclGroupStart());
  for (int r = 0; r < 2; r++) MUST(hcclAlltoAllV(a, one, NULL, b + 16 * r, one, NULL, ncclFloat32, comms[r], NULL));
  WANT(ncclInvalidUsage, ncclGroupEnd());
  for (int r = 0; r < 2; r++) MUST(ncclCommAbort(comms[r]));
  make(2);
  MUST(ncclGroupStart());
  MUST(hcclAllGatherV(a, b, one, NULL, ncclFloat32, comms[0], NULL));
  MUST(hcclAllGatherV(a, b + 16, two, NULL, ncclFloat32, comms[1], NULL));
  WANT(ncclInvalidUsage, ncclGroupEnd());
  CHECK(strstr(ncclGetLastError(comms[1]), "counts") != NULL, "the text does not say what differs: %s", ncclGetLastError(comms[1]));
  for (int r = 0; r < 2; r++) MUST(ncclCommAbort(comms[r]));
}

/* A group that makes a communicator and calls on it: the communicator is there only after the group, and the text says that. */
static void used_in_its_own_group(void) {
  float x = 1, y;
  ncclComm_t made, child = NULL;
  make(1);
  MUST(ncclGetUniqueId(&id));
  MUST(ncclGroupStart());
  MUST(ncclCommInitRank(&made, 1, id, 0));
  MUST(ncclAllReduce(&x, &y, 1, ncclFloat32, ncclSum, made, NULL));
  WANT(ncclInvalidArgument, ncclGroupEnd());
  CHECK(strstr(ncclGetLastError(NULL), "after ncclGroupEnd") != NULL, "after an init");
  MUST(ncclGroupStart());
  MUST(ncclCommSplit(comms[0], 0, 0, &child, NULL));
  MUST(ncclAllReduce(&x, &y, 1, ncclFloat32, ncclSum, child, NULL));
  WANT(ncclInvalidArgument, ncclGroupEnd());
  CHECK(strstr(ncclGetLastError(NULL), "after ncclGroupEnd") != NULL, "after a split");
  CHECK(child == NULL, "the split left a handle");
  MUST(ncclCommDestroy(comms[0]));
}

int main(int argc, char** argv) {
  static const struct test tests[] = {
    {"used_while_made", used_while_made},     {"failed_init_is_told", failed_init_is_told},
    {"destroyed_while_made", destroyed_while_made}, {"one_gives_up", one_gives_up},
    {"ended_while_used", ended_while_used},   {"alone", alone},
    {"counts_that_differ", counts_that_differ}, {"used_in_its_own_group", used_in_its_own_group},
  };
  return choose(argc, argv, tests, sizeof tests / sizeof *tests);
}
