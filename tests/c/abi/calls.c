/* Calls as data: what is refused, and that each reaches the core as its plain form does. */
#include "test.h"

static float a[64], b[64];

static struct hccl_item* last(void) { return &fake()->items[0].item; }

static hcclCall_t of(hcclFunc_t func) {
  hcclCall_t k = HCCL_CALL_INITIALIZER;
  k.func = func, k.type = ncclFloat32, k.send = a, k.recv = b, k.count = 3;
  return k;
}

static void test_refused(ncclComm_t c) {
  int before = fake()->enqueued;
  hcclCall_t k = of(hcclFuncAllReduce);
  REFUSED("call is NULL", c, hcclRun(NULL, c, NULL));
  REFUSED("comm is NULL", NULL, hcclRun(&k, NULL, NULL));
  k.magic = 0;
  REFUSED("HCCL_CALL_INITIALIZER", c, hcclRun(&k, c, NULL));
  k = of((hcclFunc_t)13); /* a split is no call */
  REFUSED("func 13", c, hcclRun(&k, c, NULL));
  k = of((hcclFunc_t)15);
  REFUSED("func 15", c, hcclRun(&k, c, NULL));
  k = of(hcclFuncSend);
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  k.config = &config;
  REFUSED("config", c, hcclRun(&k, c, NULL));
  k = of(hcclFuncReduce);
  k.root = 9;
  REFUSED("hcclRun: root 9", c, hcclRun(&k, c, NULL));
  k = of(hcclFuncAllGatherV);
  REFUSED("counts", c, hcclRun(&k, c, NULL));
  k = of(hcclFuncAllReduce);
  k.size = 24;
  REFUSED("size 24", c, hcclRun(&k, c, NULL));
  struct { hcclCall_t call; long more[2]; } longer = {k, {0, 0}}; /* of a later header */
  longer.call.size = sizeof longer;
  MUST(hcclRun(&longer.call, c, NULL));
  longer.more[1] = 5;
  REFUSED("does not know", c, hcclRun(&longer.call, c, NULL));
  CHECK(fake()->enqueued == before + 1, "a refused call reached the core");
}

static void test_passed(ncclComm_t c) {
  uint64_t counts[4] = {1, 2, 0, 3}, displs[4] = {0, 4, 0, 8};
  hcclCall_t k = of(hcclFuncReduce);
  k.op = ncclMax, k.root = 2, k.timeout = 1500;
  MUST(hcclRun(&k, c, NULL));
  CHECK(last()->func == 1 && last()->red == ncclMax && last()->root == 2 && last()->count == 3 && last()->limit == 1500, "reduce");
  k = of(hcclFuncAlltoAllV);
  k.sendCounts = counts, k.recvCounts = counts, k.recvDispls = displs, k.timeout = HCCL_NO_LIMIT;
  MUST(ncclGroupStart());
  MUST(hcclRun(&k, c, NULL));
  memset(displs, 0xff, sizeof displs);
  MUST(ncclGroupEnd());
  CHECK(last()->func == 10 && fake()->items[0].scounts[3] == 3 && fake()->items[0].sdispls[3] == 3 && fake()->items[0].rdispls[3] == 8 &&
          last()->limit < 0, "all-to-all-v");
  k = of(hcclFuncSend);
  k.root = 3;
  MUST(hcclRun(&k, c, NULL));
  CHECK(last()->func == 11 && last()->root == 3 && last()->send == a, "send");
  k = of(hcclFuncAllReduce);
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = "ring";
  k.config = &config;
  MUST(hcclRun(&k, c, NULL));
  CHECK(strcmp(fake()->items[0].algo, "ring") == 0, "config");
  MUST(ncclAllReduce(a, b, 1, ncclFloat32, ncclSum, c, NULL));
  CHECK(last()->limit == 0, "the plain form has no limit of its own");
}

static void test_messages(ncclComm_t c) {
  hcclStatus_t s;
  MUST(hcclSend(a, 3, ncclFloat32, 2, 77, c, NULL));
  CHECK(last()->func == 11 && last()->tag == 77 && last()->root == 2, "send");
  MUST(hcclRecv(b, 3, ncclFloat32, HCCL_ANY_SOURCE, HCCL_ANY_TAG, c, NULL, &s));
  CHECK(last()->root == -1 && last()->tag == -1 && last()->up_to && last()->status == (void*)&s, "recv");
  MUST(ncclRecv(b, 3, ncclFloat32, 1, c, NULL));
  CHECK(!last()->up_to && last()->tag == 0 && last()->status == NULL, "NCCL's receive is of one length");
  REFUSED("tag -1 is negative: HCCL_ANY_TAG is for receives", c, hcclSend(a, 3, ncclFloat32, 2, HCCL_ANY_TAG, c, NULL));
  REFUSED("tag -2 is negative", c, hcclRecv(b, 3, ncclFloat32, 2, -2, c, NULL, NULL));
  REFUSED("peer -1", c, hcclSend(a, 3, ncclFloat32, HCCL_ANY_SOURCE, 0, c, NULL));
  REFUSED("peer -1", c, ncclRecv(b, 3, ncclFloat32, HCCL_ANY_SOURCE, c, NULL));
  REFUSED("peer -2", c, hcclRecv(b, 3, ncclFloat32, -2, 0, c, NULL, NULL));
  REFUSED("receive buffer", c, hcclRecv(NULL, 3, ncclFloat32, 0, 0, c, NULL, NULL));
}

static void test_barrier(ncclComm_t c) {
  int64_t limit = 7;
  MUST(hcclBarrier(250, c, NULL));
  CHECK(last()->func == 14 && last()->limit == 250 && last()->count == 1 && last()->recv != NULL, "barrier");
  hcclCall_t k = of(hcclFuncBarrier);
  k.type = (ncclDataType_t)99; /* not looked at */
  MUST(hcclRun(&k, c, NULL));
  CHECK(last()->func == 14 && last()->type == 14 && last()->red == 8, "barrier by call");
  REFUSED("hcclBarrier: comm is NULL", NULL, hcclBarrier(0, NULL, NULL));
  MUST(hcclCommSetTimeout(c, 2500));
  MUST(hcclCommGetTimeout(c, &limit));
  CHECK(limit == 2500, "%lld", (long long)limit);
  MUST(hcclCommSetTimeout(c, HCCL_NO_LIMIT));
  CHECK(fake()->limit == 0, "%lld", (long long)fake()->limit);
  REFUSED("timeout is NULL", c, hcclCommGetTimeout(c, NULL));
  REFUSED("comm", NULL, hcclCommSetTimeout((ncclComm_t)(void*)a, 1));
}

int main(void) {
  ncclComm_t c = make(4, 1);
  test_refused(c);
  test_passed(c);
  test_messages(c);
  test_barrier(c);
  return test_end();
}
