/* Messages with tags, from any rank, of up to so many elements: alone, in groups, on streams; what a rank that goes does to them. */
#include "case_ops.h"

enum { LARGE = 300000 };

static void check(const char* what, const hcclStatus_t* s, int source, int tag, size_t count, const float* d) {
  CHECK(s->source == source && s->tag == tag && s->bytes == count * sizeof(float), "%s took rank %d, tag %d, %llu bytes; not %d, %d, %zu",
        what, s->source, s->tag, (unsigned long long)s->bytes, source, tag, count * sizeof(float));
  same(what, d, source, (size_t)tag, count);
}

static void send_one(ncclComm_t c, float* s, size_t count, int to, int tag) {
  fill(s, me, (size_t)tag, count);
  MUST(c, hcclSend(s, count, ncclFloat32, to, tag, c, NULL));
}

/* Every rank sends rank 0 some messages; it takes them by tag against their order, then from anybody. */
static void order_body(void) {
  ncclComm_t c = comm_new();
  float *s = floats(LARGE), *d = floats(LARGE);
  hcclStatus_t st;
  if (me != 0) {
    for (int tag = 1; tag <= 5; tag++) send_one(c, s, (size_t)(100 * tag), 0, tag);
    NOTE("a large message");
    send_one(c, s, LARGE, 0, 6);
    send_one(c, s, 0, 0, 7);
  } else {
    for (int tag = 5; tag > 2; tag--) {
      for (int r = ranks - 1; r > 0; r--) {
        NOTE("tag %d of rank %d", tag, r);
        MUST(c, hcclRecv(d, LARGE, ncclFloat32, r, tag, c, NULL, &st));
        check("by rank and tag", &st, r, tag, (size_t)(100 * tag), d);
      }
    }
    int next[RANKS] = {0}; /* per rank, the tags that are left: 1, 2, 6, 7, in this order */
    static const int left[] = {1, 2, 6, 7};
    for (int k = 0; k < 4 * (ranks - 1); k++) {
      NOTE("message %d of anybody", k);
      MUST(c, hcclRecv(d, LARGE, ncclFloat32, HCCL_ANY_SOURCE, HCCL_ANY_TAG, c, NULL, &st));
      int tag = st.source > 0 && st.source < ranks && next[st.source] < 4 ? left[next[st.source]++] : -1;
      check("from anybody", &st, st.source, tag, tag == 6 ? LARGE : tag == 7 ? 0 : (size_t)(100 * tag), d);
    }
  }
  MUST(c, hcclBarrier(0, c, NULL));
  NOTE("tag 0 is NCCL's");
  if (me == 1) MUST(c, ncclSend(s, 0, ncclFloat32, 0, c, NULL));
  if (me == 0) MUST(c, hcclRecv(d, 5, ncclFloat32, HCCL_ANY_SOURCE, 0, c, NULL, &st));
  if (me == 0) CHECK(st.source == 1 && st.tag == 0 && st.bytes == 0, "from rank %d", st.source);
  MUST(c, ncclCommDestroy(c));
  free(s), free(d);
}

/* All to all by messages, in a group or on a stream, with receives from anybody; one's own among them. */
static void groups_body(void) {
  ncclComm_t c = comm_new();
  cudaStream_t stream = NULL;
  size_t n = 3000;
  for (int round = 0; round < times(6, 200); round++) {
    size_t count = round % 3 == 2 ? LARGE : n;
    float *s = floats(count), *d = floats(count * (size_t)ranks);
    hcclStatus_t st[RANKS];
    unsigned seen = 0;
    if (round == 3) MUST(c, hcclStreamCreate(&stream));
    NOTE("round %d", round);
    fill(s, me, (size_t)round, count);
    MUST(c, ncclGroupStart());
    for (int r = 0; r < ranks; r++) {
      MUST(c, hcclRecv(d + (size_t)r * count, count, ncclFloat32, HCCL_ANY_SOURCE, round, c, stream, &st[r]));
      MUST(c, hcclSend(s, count, ncclFloat32, (me + r) % ranks, round, c, stream));
    }
    MUST(c, ncclGroupEnd());
    MUST(c, hcclStreamSynchronize(stream));
    for (int r = 0; r < ranks; r++) {
      seen |= 1u << st[r].source;
      check("one of all", &st[r], st[r].source, round, count, d + (size_t)r * count);
    }
    CHECK(seen == (1u << ranks) - 1, "heard of %x", seen);
    free(s), free(d);
  }
  MUST(c, hcclStreamDestroy(stream));
  MUST(c, ncclCommDestroy(c));
}

/* A message that is too long, or of another type, is told to both. */
static int is_type;

static void long_body(void) {
  ncclComm_t c = comm_new();
  float b[64];
  NOTE("a message of 11 for a receive of 10");
  ncclResult_t got = me == 0 ? hcclRecv(b, 10, is_type ? ncclInt32 : ncclFloat32, HCCL_ANY_SOURCE, 3, c, NULL, NULL)
                             : hcclSend(b, is_type ? 10 : 11, ncclFloat32, 0, 3, c, NULL);
  if (me == 0) {
    CHECK(got == ncclInvalidUsage, "result %d", got);
    SAYS(c, "rank 1");
    SAYS(c, is_type ? "float32" : "11");
  } else { /* which has sent it by then, perhaps */
    CHECK(state_after(c, ncclSuccess, 10) == ncclInvalidUsage, "no asynchronous error");
  }
  meet();
  MUST(NULL, ncclCommAbort(c));
}

/* A rank that is killed ends a receive from anybody on rank 0; what ran out of time before did not hurt. */
static void death_body(void) {
  ncclComm_t c = comm_new();
  float b[8];
  hcclCall_t k = HCCL_CALL_INITIALIZER;
  k.func = hcclFuncRecv, k.type = ncclFloat32, k.recv = b, k.count = 8, k.root = HCCL_ANY_SOURCE, k.tag = HCCL_ANY_TAG, k.timeout = 150;
  if (me == 0) {
    WANT(ncclTimeout, c, hcclRun(&k, c, NULL));
    SAYS(c, "from any rank");
  }
  MUST(c, sum_checked(c, 1000));
  meet();
  NOTE("a receive from anybody while rank 2 dies");
  if (me == 2) die_in(0.2);
  if (me == 0) {
    double from = now();
    k.timeout = HCCL_NO_LIMIT;
    WANT(ncclRemoteError, c, hcclRun(&k, c, NULL));
    WITHIN(5, from);
    SAYS(c, "rank 2 is gone");
  } else {
    for (; me == 2;) pause();
    wait_ended(2);
  }
  meet_of(ranks - 1);
  MUST(NULL, ncclCommAbort(c));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int faults = 0;
  if (!strcmp(what, "order")) return job_run(4, 30, order_body) != 0;
  if (!strcmp(what, "groups")) return job_run(3, 30, groups_body) + job_run(1, 30, groups_body) != 0;
  if (!strcmp(what, "death")) return job_run(3, 30, death_body) != 0;
  if (!strcmp(what, "long")) {
    for (is_type = 0; is_type < 2; is_type++) faults += job_run(2, 30, long_body);
    return faults != 0;
  }
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
