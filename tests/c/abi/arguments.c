/* Arguments of operations: what is refused, with which text, and what reaches the core. */
#include "test.h"

static float a[64], b[64];
static const ncclDataType_t f32 = ncclFloat32;

static struct hccl_item* last(void) { return &fake()->items[0].item; }

static void test_refused(ncclComm_t c, ncclComm_t other) {
  float two = 2;
  ncclRedOp_t op;
  cudaStream_t stream = (cudaStream_t)(size_t)4096;
  int before = fake()->enqueued;
  REFUSED("type 99", c, ncclAllReduce(a, b, 1, (ncclDataType_t)99, ncclSum, c, NULL));
  REFUSED("type -1", c, ncclAllReduce(a, b, 1, (ncclDataType_t)-1, ncclSum, c, NULL));
  REFUSED("op 99", c, ncclAllReduce(a, b, 1, f32, (ncclRedOp_t)99, c, NULL));
  REFUSED("op -1", c, ncclReduceScatter(a, b, 1, f32, (ncclRedOp_t)-1, c, NULL));
  REFUSED("type 12", c, ncclAllReduce(a, b, 1, (ncclDataType_t)12, ncclSum, c, NULL)); /* between NCCL's numbers and ours */
  REFUSED("type 67", c, ncclBroadcast(a, b, 1, (ncclDataType_t)67, 0, c, NULL));
  REFUSED("op 5", c, ncclAllReduce(a, b, 1, ncclInt32, (ncclRedOp_t)5, c, NULL));
  REFUSED("op 67", c, ncclAllReduce(a, b, 1, ncclInt32, (ncclRedOp_t)67, c, NULL));
  REFUSED("op 66 is of bits, which ncclFloat8e5m2", c, ncclAllReduce(a, b, 1, ncclFloat8e5m2, hcclBitXor, c, NULL));
  REFUSED("hcclBool has no mean", c, ncclAllReduce(a, b, 1, hcclBool, ncclAvg, c, NULL));
  REFUSED("hcclBool has no scaled sum", c, ncclRedOpCreatePreMulSum(&op, &two, hcclBool, ncclScalarHostImmediate, c));
  REFUSED("op 64 is built in", c, ncclRedOpDestroy(hcclBitAnd, c));
  REFUSED("send", c, ncclAllReduce(NULL, b, 1, f32, ncclSum, c, NULL));
  REFUSED("receive", c, ncclAllReduce(a, NULL, 1, f32, ncclSum, c, NULL));
  REFUSED("count", c, ncclAllReduce(a, b, (size_t)-1, f32, ncclSum, c, NULL));
  REFUSED("count", c, ncclAllGather(a, b, (size_t)-1 / 8, ncclFloat64, c, NULL));
  REFUSED("count", c, ncclAllGather(a, b, (size_t)1 << 61, ncclInt8, c, NULL)); /* fits once, not four times */
  REFUSED("root 4", c, ncclReduce(a, b, 1, f32, ncclSum, 4, c, NULL));
  REFUSED("root -1", c, ncclBcast(a, 1, f32, -1, c, NULL));
  REFUSED("peer 4", c, ncclSend(a, 1, f32, 4, c, NULL));
  REFUSED("send", c, ncclSend(NULL, 1, f32, 0, c, NULL));
  REFUSED("receive", c, ncclRecv(NULL, 1, f32, 0, c, NULL));
  REFUSED("0x1000 is no stream of host memory: use what hcclStreamCreate", c, ncclAllReduce(a, b, 1, f32, ncclSum, c, stream));
  REFUSED("overlap", c, ncclAllReduce(a, a + 1, 8, f32, ncclSum, c, NULL));
  REFUSED("overlap", c, ncclAllGather(a, a, 8, f32, c, NULL)); /* rank 1's place is a + 8 */
  REFUSED("overlap", c, ncclReduceScatter(a, a, 8, f32, ncclSum, c, NULL));
  REFUSED("overlap", c, ncclAlltoAll(a, a, 8, f32, c, NULL));
  REFUSED("scalar", c, ncclRedOpCreatePreMulSum(&op, NULL, f32, ncclScalarHostImmediate, c));
  REFUSED("residence", c, ncclRedOpCreatePreMulSum(&op, &two, f32, (ncclScalarResidence_t)5, c));
  MUST(ncclRedOpCreatePreMulSum(&op, &two, f32, ncclScalarHostImmediate, c));
  REFUSED("type", c, ncclAllReduce(a, b, 1, ncclFloat64, op, c, NULL));
  REFUSED("reduction", other, ncclAllReduce(a, b, 1, f32, op, other, NULL));
  REFUSED("reduction", other, ncclRedOpDestroy(op, other));
  MUST(ncclRedOpDestroy(op, c));
  REFUSED("reduction", c, ncclAllReduce(a, b, 1, f32, op, c, NULL));
  REFUSED("op", c, ncclRedOpDestroy(ncclSum, c));
  CHECK(fake()->enqueued == before, "a refused call reached the core");
}

/* Rank 1 of 4 makes these; each must reach the core as it was made. */
static void test_passed(ncclComm_t c) {
  const uint64_t ones[4] = {1, 1, 1, 1};
  MUST(ncclReduce(a, NULL, 3, f32, ncclMax, 0, c, NULL)); /* not the root: the receive buffer is not used */
  CHECK(last()->func == 1 && last()->red == ncclMax && last()->root == 0 && last()->count == 3 && last()->comm == c, "reduce");
  MUST(ncclBroadcast(NULL, b, 3, f32, 0, c, NULL));
  CHECK(last()->func == 2 && last()->recv == b, "broadcast");
  REFUSED("send", c, ncclBroadcast(NULL, b, 3, f32, 1, c, NULL));
  MUST(ncclBcast(b, 3, f32, 1, c, NULL));
  CHECK(last()->func == 2 && last()->send == b && last()->recv == b, "bcast");
  MUST(ncclGather(a, NULL, 3, f32, 0, c, NULL));
  CHECK(last()->func == 6, "gather");
  REFUSED("receive", c, ncclGather(a, NULL, 3, f32, 1, c, NULL));
  MUST(ncclScatter(NULL, b, 3, f32, 0, c, NULL));
  CHECK(last()->func == 7, "scatter");
  REFUSED("send", c, ncclScatter(NULL, b, 3, f32, 1, c, NULL));
  MUST(ncclAlltoAll(a, b, 3, f32, c, NULL));
  CHECK(last()->func == 5, "all-to-all");
  MUST(ncclAllReduce(a, b, 3, hcclBool, hcclBitXor, c, NULL)); /* ours follow NCCL's, without a gap */
  CHECK(last()->type == 14 && last()->red == 8, "type %d, op %d", last()->type, last()->red);
  MUST(ncclAllReduce(a, b, 3, hcclInt16, ncclAvg, c, NULL));
  CHECK(last()->type == 12 && last()->red == 4, "type %d, op %d", last()->type, last()->red);
  MUST(hcclReduceScatterV(a, b, ones, NULL, hcclUint16, hcclBitOr, c, NULL));
  CHECK(last()->type == 13 && last()->red == 7, "type %d, op %d", last()->type, last()->red);
  MUST(ncclSend(a, 3, ncclInt64, 2, c, NULL));
  CHECK(last()->func == 11 && last()->send == a && last()->root == 2 && last()->type == ncclInt64, "send");
  MUST(ncclRecv(b, 3, f32, 1, c, NULL));
  CHECK(last()->func == 12 && last()->recv == b && last()->root == 1, "recv");
  MUST(ncclAllReduce(NULL, NULL, 0, f32, ncclSum, c, NULL)); /* no elements: nothing is used */
  MUST(ncclSend(NULL, 0, f32, 0, c, NULL));
  MUST(ncclAllReduce(a, a, 8, f32, ncclSum, c, NULL)); /* the right ways of being in place */
  MUST(ncclAllGather(a + 8, a, 8, f32, c, NULL));
  MUST(ncclReduceScatter(a, a + 8, 8, f32, ncclSum, c, NULL));
  CHECK(last()->func == 4 && last()->send == a && last()->recv == a + 8, "reduce-scatter in place");
  MUST(ncclAllReduce(a, a + 8, 8, f32, ncclAvg, c, NULL)); /* neighbours do not overlap */
  MUST(ncclAllReduce(a, b, 1, f32, ncclSum, c, (cudaStream_t)(size_t)1)); /* CUDA's default streams */
  MUST(ncclAllReduce(a, b, 1, f32, ncclSum, c, (cudaStream_t)(size_t)2));
  CHECK(last()->stream == NULL, "a default stream is the synchronous one");
}

static uint64_t bits(const void* p, size_t n) {
  uint64_t v = 0;
  memcpy(&v, p, n);
  return v;
}

static void test_premulsum(ncclComm_t c) {
  double scale = 0.5;
  ncclRedOp_t now, later;
  MUST(ncclRedOpCreatePreMulSum(&now, &scale, ncclFloat64, ncclScalarHostImmediate, c));
  MUST(ncclRedOpCreatePreMulSum(&later, &scale, ncclFloat64, ncclScalarDevice, c));
  CHECK((int)now > ncclNumOps && now != later, "ops %d and %d", (int)now, (int)later);
  scale = 3;
  MUST(ncclAllReduce(a, b, 1, ncclFloat64, now, c, NULL));
  double half = 0.5, three = 3, four = 4;
  CHECK(last()->red == 5 && last()->scale == bits(&half, 8), "an immediate factor is the one at creation");
  MUST(ncclAllReduce(a, b, 1, ncclFloat64, later, c, NULL));
  CHECK(last()->red == 5 && last()->scale == bits(&three, 8), "a device factor is read at the call");
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(a, b, 1, ncclFloat64, later, c, NULL));
  MUST(ncclAllReduce(a, b, 1, ncclFloat64, now, c, NULL));
  MUST(ncclRedOpDestroy(now, c)); /* the call was made: it stays as it is */
  scale = 4;
  MUST(ncclGroupEnd());
  CHECK(fake()->items[0].item.scale == bits(&four, 8), "a device factor is read at the group's end");
  CHECK(fake()->items[1].item.scale == bits(&half, 8), "an immediate factor stays");
  MUST(ncclRedOpDestroy(later, c));
  unsigned char small[2] = {7, 0xff}; /* only the type's own bytes are read */
  MUST(ncclRedOpCreatePreMulSum(&now, small, ncclUint8, ncclScalarHostImmediate, c));
  MUST(ncclAllReduce(a, b, 1, ncclUint8, now, c, NULL));
  CHECK(last()->scale == 7, "0x%llx", (unsigned long long)last()->scale);
}

static void test_vectors(ncclComm_t c) {
  uint64_t counts[4] = {1, 2, 0, 3}, displs[4] = {0, 4, 0, 8}, huge[4] = {1, (uint64_t)-1, 0, 0};
  struct fake_item* f = &fake()->items[0];
  MUST(hcclAllGatherV(a, b, counts, NULL, f32, c, NULL));
  CHECK(f->item.func == 8 && f->item.count == 6 && f->rcounts[3] == 3 && f->rdispls[3] == 3 && f->rdispls[1] == 1, "packed");
  MUST(hcclAllGatherV(b + 4, b, counts, displs, f32, c, NULL)); /* in place */
  CHECK(f->rdispls[3] == 8, "displacements as given");
  REFUSED("overlap", c, hcclAllGatherV(b + 3, b, counts, displs, f32, c, NULL));
  REFUSED("counts", c, hcclAllGatherV(a, b, NULL, NULL, f32, c, NULL));
  REFUSED("count", c, hcclAllGatherV(a, b, huge, NULL, f32, c, NULL));
  REFUSED("send", c, hcclAllGatherV(NULL, b, counts, NULL, f32, c, NULL));
  REFUSED("type", c, hcclAllGatherV(a, b, counts, NULL, (ncclDataType_t)77, c, NULL));
  MUST(hcclReduceScatterV(a, b, counts, displs, f32, ncclMin, c, NULL));
  CHECK(f->item.func == 9 && f->item.red == ncclMin && f->rcounts[1] == 2, "reduce-scatter-v");
  REFUSED("op", c, hcclReduceScatterV(a, b, counts, displs, f32, (ncclRedOp_t)99, c, NULL));
  REFUSED("receive", c, hcclReduceScatterV(a, NULL, counts, displs, f32, ncclSum, c, NULL));
  MUST(ncclGroupStart()); /* the arrays are the caller's again when the call has returned */
  MUST(hcclAlltoAllV(a, counts, NULL, b, counts, displs, f32, c, NULL));
  memset(counts, 0xff, sizeof counts);
  memset(displs, 0xff, sizeof displs);
  MUST(ncclGroupEnd());
  CHECK(f->item.func == 10 && f->scounts[3] == 3 && f->sdispls[3] == 3 && f->rcounts[1] == 2 && f->rdispls[1] == 4, "all-to-all-v");
}

static void test_memory(ncclComm_t c) {
  void *p = NULL, *h = NULL;
  MUST(ncclMemAlloc(&p, 100));
  CHECK(p != NULL, "no memory");
  MUST(ncclCommRegister(c, p, 100, &h));
  MUST(ncclCommDeregister(c, h));
  MUST(ncclMemFree(p));
  MUST(ncclMemFree(NULL));
  REFUSED("ptr", NULL, ncclMemAlloc(NULL, 8));
  REFUSED("size", NULL, ncclMemAlloc(&p, (size_t)-1));
  REFUSED("buff", c, ncclCommRegister(c, NULL, 8, &h));
  REFUSED("size", c, ncclCommRegister(c, a, 0, &h));
  REFUSED("handle", c, ncclCommRegister(c, a, 8, NULL));
  REFUSED("handle", c, ncclCommDeregister(c, NULL));
}

int main(void) {
  ncclComm_t c = make(4, 1), other = make(1, 0);
  test_refused(c, other);
  test_passed(c);
  test_premulsum(c);
  test_vectors(c);
  test_memory(c);
  MUST(ncclAlltoAll(a, a, 8, f32, other, NULL)); /* a communicator of one may */
  return test_end();
}
