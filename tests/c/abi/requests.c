/* Requests as the shim sees them: what is refused, what reaches the core, and what of it comes back. */
#include "test.h"

static float a[64], b[64];
static hcclRequest_t told;
static int result_told;

static void tell(hcclRequest_t request, ncclResult_t result, void* arg) {
  told = request, result_told = (int)result;
  ++*(int*)arg;
}

static hcclCall_t of(hcclFunc_t func) {
  hcclCall_t k = HCCL_CALL_INITIALIZER;
  k.func = func, k.type = ncclFloat32, k.send = a, k.recv = b, k.count = 3;
  return k;
}

static hcclRequest_t start(ncclComm_t c) {
  hcclCall_t k = of(hcclFuncAllReduce);
  hcclRequest_t r = NULL;
  MUST(hcclStart(&k, c, &r));
  CHECK(r != NULL, "no handle");
  return r;
}

static void test_started(ncclComm_t c) {
  struct hccl_item* i = &fake()->items[0].item;
  uint64_t counts[4] = {1, 2, 0, 3};
  double scale = 0.5, three = 3;
  ncclRedOp_t op;
  hcclRequest_t r = (hcclRequest_t)(void*)a;
  hcclCall_t k = of(hcclFuncReduceScatterV);
  k.recvCounts = counts, k.timeout = 70, k.op = ncclMin;
  MUST(hcclStart(&k, c, &r));
  CHECK(i->func == 9 && i->red == ncclMin && i->limit == 70 && i->stream == NULL && fake()->items[0].rdispls[3] == 3, "call");
  k = of(hcclFuncAllReduce);
  k.type = ncclFloat64;
  MUST(ncclRedOpCreatePreMulSum(&op, &scale, ncclFloat64, ncclScalarDevice, c));
  scale = three, k.op = op;
  MUST(hcclStart(&k, c, &r));
  CHECK(memcmp(&i->scale, &three, 8) == 0, "a factor is read when the call is started");
  int before = fake()->enqueued, started = fake()->started;
  MUST(ncclGroupStart());
  MUST(hcclStart(&k, c, &r)); /* not part of the group */
  CHECK(fake()->started == started + 1, "a request waits for the end of a group");
  MUST(ncclGroupEnd());
  CHECK(fake()->enqueued == before, "a request is part of a group");
}

static void test_refused(ncclComm_t c) {
  hcclRequest_t r = start(c), foreign = (hcclRequest_t)(void*)a, none[2] = {NULL, NULL};
  hcclStatus_t status;
  size_t index = 9;
  int started = fake()->started, n = 0;
  hcclCall_t k = of(hcclFuncReduce);
  k.root = 7;
  REFUSED("hcclStart: root 7", c, hcclStart(&k, c, &r));
  CHECK(r == NULL, "a refused call leaves a handle");
  REFUSED("request is NULL", c, hcclStart(&k, c, NULL));
  REFUSED("call is NULL", c, hcclStart(NULL, c, &r));
  REFUSED("comm is NULL", NULL, hcclStart(&k, NULL, &r));
  REFUSED("is no request", NULL, hcclRequestWait(foreign, 0));
  REFUSED("hcclRequestWait: request is NULL", NULL, hcclRequestWait(NULL, 0));
  REFUSED("hcclRequestTest: request is NULL", NULL, hcclRequestTest(NULL));
  REFUSED("is no request", NULL, hcclRequestWaitAll(&foreign, 1, 0));
  REFUSED("requests is NULL", NULL, hcclRequestWaitAll(NULL, 1, 0));
  REFUSED("index is NULL", NULL, hcclRequestWaitAny(&r, 1, 0, NULL));
  REFUSED("no request among 2", NULL, hcclRequestWaitAny(none, 2, 0, &index));
  REFUSED("status is NULL", NULL, hcclRequestGetStatus(start(c), NULL));
  REFUSED("is no request", NULL, hcclRequestGetStatus(foreign, &status));
  REFUSED("fn is NULL", NULL, hcclRequestSetCallback(start(c), NULL, &n));
  REFUSED("is no request", NULL, hcclRequestCancel(foreign));
  REFUSED("is no request", NULL, hcclRequestFree(foreign));
  MUST(hcclRequestFree(NULL));
  MUST(hcclRequestWaitAll(none, 2, HCCL_NO_LIMIT));
  MUST(hcclRequestWaitAll(NULL, 0, 0));
  CHECK(fake()->started == started + 2, "a refused call reached the core");
}

static void test_waits(ncclComm_t c) {
  hcclRequest_t list[4] = {NULL, start(c), NULL, start(c)};
  hcclStatus_t status;
  size_t index = 9;
  int n = 0;
  MUST(hcclRequestWaitAny(list, 4, 250, &index));
  CHECK(index == 1 && fake()->waited == 4 && fake()->limit == 250, "index %zu", index);
  MUST(hcclRequestWaitAll(list, 4, HCCL_NO_LIMIT));
  CHECK(fake()->limit < 0, "limit %lld", (long long)fake()->limit);
  MUST(hcclRequestTest(list[3]));
  CHECK(fake()->limit == 0, "a test waits");
  MUST(hcclRequestGetStatus(list[3], &status));
  CHECK(status.source == 5 && fake()->stream == (void*)list[3], "status");
  MUST(hcclRequestSetCallback(list[1], tell, &n));
  CHECK(n == 1 && told == list[1] && result_told == ncclRemoteError, "callback");
  CHECK(strcmp(hcclRequestGetLastError(list[1]), "") == 0, "a text of success");
  CHECK(strstr(hcclRequestGetLastError(NULL), "request is NULL") != NULL, "%s", hcclRequestGetLastError(NULL));
  fake()->answer = ncclRemoteError;
  WANT(ncclRemoteError, hcclRequestWait(list[1], 0));
  CHECK(strcmp(hcclRequestGetLastError(list[1]), "the fake core's request failed") == 0, "%s", hcclRequestGetLastError(list[1]));
  fake()->answer = ncclInProgress;
  WANT(ncclInProgress, hcclRequestTest(list[1]));
  CHECK(strcmp(hcclRequestGetLastError(list[1]), "") == 0, "a text of what goes on");
  fake()->answer = 0;
  MUST(hcclRequestCancel(list[1]));
  CHECK(fake()->stream_call == 22, "cancel");
  MUST(hcclRequestFree(list[1]));
  CHECK(fake()->stream_call == 23 && fake()->stream == (void*)list[1], "free");
}

int main(void) {
  ncclComm_t c = make(4, 1);
  test_started(c);
  test_refused(c);
  test_waits(c);
  return test_end();
}
