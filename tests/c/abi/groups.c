/* Groups: nesting, errors, what is kept, threads, simulation. */
#include "test.h"

static float a[1000], b[1000];

static ncclResult_t sum(ncclComm_t c, size_t count) { return ncclAllReduce(a, b, count, ncclFloat, ncclSum, c, NULL); }

static void test_order(ncclComm_t c, ncclComm_t d) {
  int before = fake()->enqueued;
  MUST(ncclGroupStart());
  MUST(sum(c, 1));
  MUST(ncclGroupStart());
  MUST(sum(d, 2));
  MUST(ncclGroupEnd());
  MUST(ncclSend(a, 3, ncclFloat, 0, c, NULL));
  CHECK(fake()->enqueued == before, "something ran before the group's end");
  MUST(ncclGroupEnd());
  CHECK(fake()->enqueued == before + 1 && fake()->count == 3, "%d calls, %d items", fake()->enqueued - before, fake()->count);
  for (int k = 0; k < 3; k++) CHECK(fake()->items[k].item.count == (uint64_t)k + 1, "item %d is another", k);
  CHECK(fake()->items[1].item.comm == d, "the second item is another communicator's");
  MUST(ncclGroupStart());
  MUST(ncclGroupEnd());
  CHECK(fake()->enqueued == before + 1, "an empty group reached the core");
  WANT(ncclInvalidUsage, ncclGroupEnd());
  CHECK(strstr(ncclGetLastError(NULL), "ncclGroupStart") != NULL, "\"%s\"", ncclGetLastError(NULL));
}

/* More items than a first array holds. */
static void test_many(ncclComm_t c) {
  MUST(ncclGroupStart());
  for (size_t k = 1; k <= 1000; k++) MUST(sum(c, k));
  MUST(ncclGroupEnd());
  CHECK(fake()->count == 1000 && fake()->items[63].item.count == 64, "%d items", fake()->count);
}

/* An error of one call ends the group: nothing of it is done, and handles that were to be made are gone. */
static void test_error(ncclComm_t c) {
  ncclUniqueId id;
  ncclComm_t made = NULL;
  int before = fake()->enqueued;
  MUST(ncclGetUniqueId(&id));
  MUST(ncclGroupStart());
  MUST(sum(c, 1));
  MUST(ncclCommInitRank(&made, 2, id, 0));
  WANT(ncclInvalidArgument, sum(c, (size_t)-1));
  MUST(sum(c, 2));
  WANT(ncclInvalidArgument, ncclGroupEnd());
  CHECK(fake()->enqueued == before, "a broken group reached the core");
  CHECK(made == NULL, "the handle of a dropped init stayed");
  CHECK(strstr(ncclGetLastError(NULL), "count") != NULL, "\"%s\"", ncclGetLastError(NULL));
  MUST(ncclGroupStart());
  MUST(sum(c, 3));
  MUST(ncclGroupEnd());
  CHECK(fake()->enqueued == before + 1 && fake()->count == 1, "the next group is not clean");
  fake()->answer = ncclRemoteError; /* an error of the core */
  MUST(ncclGroupStart());
  MUST(ncclCommInitRank(&made, 2, id, 0));
  MUST(ncclCommInitRank(&made, 2, id, 1));
  WANT(ncclRemoteError, ncclGroupEnd());
  CHECK(made == NULL, "the handle of a failed init stayed");
  fake()->answer = 0;
}

/* Structs and strings are the caller's again when the call has returned. */
static void test_kept(ncclComm_t c) {
  char alg[] = "ring,tree", name[] = "a name";
  ncclCollConfig_t how = NCCL_COLLCONFIG_INITIALIZER;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  ncclComm_t made;
  MUST(ncclGetUniqueId(&id));
  how.algSelection = alg;
  how.minCTAs = 2;
  how.maxCTAs = 4;
  config.commName = name;
  MUST(ncclGroupStart());
  MUST(ncclAllReduceConfig(a, b, 1, ncclFloat, ncclSum, c, NULL, &how));
  MUST(ncclCommInitRankConfig(&made, 2, id, 0, &config));
  memset(alg, 'x', sizeof alg - 1);
  memset(name, 'x', sizeof name - 1);
  memset(&how, 0xff, sizeof how);
  memset(&config, 0xff, sizeof config);
  MUST(ncclGroupEnd());
  struct fake_item* f = fake()->items;
  CHECK(strcmp(f[0].algo, "ring,tree") == 0, "algorithm \"%s\"", f[0].algo);
  CHECK(f[0].item.min_channels == 2 && f[0].item.max_channels == 4 && f[0].item.algo_forced == 1, "channels");
  CHECK(strcmp(f[1].name, "a name") == 0, "name \"%s\"", f[1].name);
  MUST(ncclCommDestroy(made));
}

static void test_simulate(ncclComm_t c) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  int before = fake()->enqueued;
  WANT(ncclInvalidUsage, ncclGroupSimulateEnd(&info));
  MUST(ncclGroupStart());
  MUST(sum(c, 1));
  MUST(ncclGroupSimulateEnd(&info));
  CHECK(info.estimatedTime == 12.5f && fake()->simulated == 1 && fake()->enqueued == before, "%g us", info.estimatedTime);
  MUST(ncclGroupStart());
  MUST(sum(c, 1));
  info.magic = 1;
  REFUSED("magic", NULL, ncclGroupSimulateEnd(&info));
  WANT(ncclInvalidUsage, ncclGroupEnd());
}

static ncclComm_t shared, unfinished;
static void* other_thread(void* p) {
  int before = fake()->enqueued;
  MUST(sum(shared, 9));
  CHECK(fake()->enqueued == before + 1, "another thread's call fell into this thread's group");
  WANT(ncclInvalidUsage, ncclGroupEnd());
  MUST(ncclGroupStart());
  MUST(sum(shared, 9));
  MUST(ncclCommInitRank(&unfinished, 2, *(ncclUniqueId*)p, 0)); /* the thread ends with an open group */
  return NULL;
}
static void test_threads(ncclComm_t c) {
  pthread_t t;
  ncclUniqueId id;
  int v;
  MUST(ncclGetUniqueId(&id));
  shared = c;
  MUST(ncclGroupStart());
  pthread_create(&t, NULL, other_thread, &id);
  pthread_join(t, NULL);
  MUST(ncclGroupEnd());
  CHECK(unfinished != NULL, "the end of a thread has written to where a group's handle was to go");
  REFUSED("was destroyed", unfinished, ncclCommCount(unfinished, &v));
}

int main(void) {
  ncclComm_t c = make(2, 0), d = make(2, 1);
  test_order(c, d);
  test_many(c);
  test_error(c);
  test_kept(c);
  test_simulate(c);
  test_threads(c);
  return test_end();
}
