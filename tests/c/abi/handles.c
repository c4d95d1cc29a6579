/* Wrong, stale and many handles; queries; ends. */
#include "test.h"

static char zeros[256], garbage[256];

/* refused makes every kind of call on a handle that is none. */
static void refused(ncclComm_t bad, const char* word) {
  int v;
  float x[4] = {0, 0, 0, 0};
  void* p;
  ncclResult_t state;
  ncclComm_t child;
  ncclUniqueId id;
  ncclRedOp_t op;
  REFUSED(word, bad, ncclCommCount(bad, &v));
  REFUSED(word, bad, ncclCommUserRank(bad, &v));
  REFUSED(word, bad, ncclCommCuDevice(bad, &v));
  REFUSED(word, bad, ncclCommGetAsyncError(bad, &state));
  REFUSED(word, bad, ncclCommGetUniqueId(bad, &id));
  REFUSED(word, bad, ncclAllReduce(x, x, 1, ncclFloat, ncclSum, bad, NULL));
  REFUSED(word, bad, ncclSend(x, 1, ncclFloat, 0, bad, NULL));
  REFUSED(word, bad, ncclRecv(x, 1, ncclFloat, 0, bad, NULL));
  REFUSED(word, bad, ncclCommSplit(bad, 0, 0, &child, NULL));
  REFUSED(word, bad, ncclCommRegister(bad, x, 4, &p));
  REFUSED(word, bad, ncclCommDeregister(bad, x));
  REFUSED(word, bad, ncclRedOpCreatePreMulSum(&op, x, ncclFloat, ncclScalarHostImmediate, bad));
  REFUSED(word, bad, ncclRedOpDestroy(ncclSum, bad));
  REFUSED(word, bad, ncclCommSuspend(bad, 0));
  REFUSED(word, bad, ncclCommWindowDeregister(bad, NULL));
  if (bad == NULL) return;
  REFUSED(word, bad, ncclCommFinalize(bad));
  REFUSED(word, bad, ncclCommDestroy(bad));
  REFUSED(word, bad, ncclCommAbort(bad));
  REFUSED(word, bad, ncclCommRevoke(bad, 0));
}

static void test_wrong(void) {
  ncclComm_t comm = make(2, 1), stale = comm, next;
  memset(garbage, 0xab, sizeof garbage);
  refused(NULL, "is NULL");
  refused((ncclComm_t)(void*)zeros, "is no communicator");
  refused((ncclComm_t)(void*)garbage, "is no communicator");
  refused((ncclComm_t)(size_t)8, "is no communicator");
  refused((ncclComm_t)((size_t)comm + 1000), "was destroyed");
  MUST(ncclCommDestroy(comm));
  refused(stale, "was destroyed");
  next = make(2, 0);
  CHECK(next != stale, "a handle came back at once");
  refused(stale, "was destroyed");
  MUST(ncclCommAbort(next));
  refused(next, "was destroyed");
  MUST(ncclCommDestroy(NULL));
  MUST(ncclCommAbort(NULL));
  MUST(ncclCommFinalize(NULL));
}

static void test_queries(void) {
  ncclComm_t comm = make(5, 3), all[3];
  int v = -1, devices[3] = {4, 4, 9};
  ncclResult_t state;
  uint64_t stat;
  MUST(ncclCommCount(comm, &v));
  CHECK(v == 5, "%d", v);
  MUST(ncclCommUserRank(comm, &v));
  CHECK(v == 3, "%d", v);
  MUST(ncclCommCuDevice(comm, &v));
  CHECK(v == 0, "%d", v);
  REFUSED("count", comm, ncclCommCount(comm, NULL));
  REFUSED("rank", comm, ncclCommUserRank(comm, NULL));
  fake()->async = ncclRemoteError;
  MUST(ncclCommGetAsyncError(comm, &state));
  CHECK(state == ncclRemoteError, "%d", (int)state);
  fake()->async = 0;
  MUST(ncclCommMemStats(comm, ncclStatGpuMemTotal, &stat));
  CHECK(stat == 1003, "%llu", (unsigned long long)stat);
  REFUSED("stat", comm, ncclCommMemStats(comm, (ncclCommMemStat_t)9, &stat));
  CHECK(ncclTeamWorld(comm).nRanks == 5 && ncclTeamWorld(comm).rank == 3, "wrong team");
  uint64_t number = fake()->items[0].item.new_id;
  MUST(ncclCommFinalize(comm));
  MUST(ncclCommDestroy(comm));
  CHECK(fake()->ended == number && number != 0, "the core was told to end %llu", (unsigned long long)fake()->ended);

  MUST(ncclCommInitAll(all, 3, devices));
  CHECK(fake()->count == 3, "%d items", fake()->count);
  for (int k = 0; k < 3; k++) {
    MUST(ncclCommCuDevice(all[k], &v));
    CHECK(v == devices[k], "rank %d is on device %d", k, v);
    MUST(ncclCommUserRank(all[k], &v));
    CHECK(v == k, "rank %d says %d", k, v);
    MUST(ncclCommDestroy(all[k]));
  }
  devices[1] = -2;
  REFUSED("device -2", NULL, ncclCommInitAll(all, 3, devices));
  REFUSED("count", NULL, ncclCommInitAll(all, 0, NULL));
}

/* More than fit into one block of the table, all different, numbers too. */
static void test_many(void) {
  enum { N = 300 };
  static ncclComm_t comms[N];
  uint64_t last = 0;
  for (int k = 0; k < N; k++) {
    comms[k] = make(N, k);
    CHECK(fake()->items[0].item.new_id > last, "a number came twice");
    last = fake()->items[0].item.new_id;
  }
  for (int k = 0; k < N; k++) {
    int v;
    MUST(ncclCommUserRank(comms[k], &v));
    CHECK(v == k, "handle %d is rank %d", k, v);
  }
  for (int k = N; k-- > 0;) MUST(ncclCommDestroy(comms[k]));
}

/* A failed init leaves NULL and no handle behind; a non-blocking one gives the handle at once. */
static void test_init(void) {
  ncclUniqueId id;
  ncclComm_t comm = (ncclComm_t)(void*)zeros, child;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  int v = 0;
  MUST(ncclGetUniqueId(&id));
  fake()->answer = ncclRemoteError;
  WANT(ncclRemoteError, ncclCommInitRank(&comm, 2, id, 0));
  CHECK(comm == NULL, "the handle of a failed init stayed");
  CHECK(strstr(ncclGetLastError(NULL), "fake core refuses") != NULL, "\"%s\"", ncclGetLastError(NULL));
  fake()->answer = ncclInProgress;
  fake()->not_ready = 1;
  config.blocking = 0;
  WANT(ncclInProgress, ncclCommInitRankConfig(&comm, 2, id, 1, &config));
  CHECK(comm != NULL, "no handle");
  MUST(ncclCommCount(comm, &v));
  CHECK(v == 2, "%d", v);
  WANT(ncclInProgress, ncclCommSplit(comm, 0, 0, &child, NULL));
  CHECK(child != NULL, "no handle of the child");
  CHECK(fake()->items[0].item.blocking == 0, "the child did not inherit blocking=0");
  WANT(ncclInProgress, ncclCommCount(child, &v));
  fake()->services->ready(child, 1, 2, NULL);
  MUST(ncclCommUserRank(child, &v));
  CHECK(v == 1, "%d", v);
  fake()->answer = fake()->not_ready = 0;
  MUST(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 7, &child, NULL));
  CHECK(child == NULL && fake()->items[0].item.comm == NULL && fake()->items[0].item.new_id != 0, "a split without colour");
  MUST(ncclCommSplit(comm, -5, 7, &child, NULL)); /* the core refuses it on all ranks */
  CHECK(child == NULL && fake()->items[0].item.comm == NULL && fake()->items[0].item.color == -5, "a split that cannot be");
  REFUSED("nranks", NULL, ncclCommInitRank(&comm, 0, id, 0));
  REFUSED("rank 2", NULL, ncclCommInitRank(&comm, 2, id, 2));
  REFUSED("rank -1", NULL, ncclCommInitRank(&comm, 2, id, -1));
  REFUSED("comm", NULL, ncclCommInitRank(NULL, 2, id, 0));
  REFUSED("ids", NULL, ncclCommInitRankScalable(&comm, 2, 0, 1, NULL, NULL));
  REFUSED("3 ids", NULL, ncclCommInitRankScalable(&comm, 2, 0, 3, &id, NULL));
}

int main(void) {
  CHECK(strcmp(ncclGetLastError(NULL), "") == 0, "an error before the first call");
  test_wrong();
  test_queries();
  test_many();
  test_init();
  return test_end();
}
