/* Order of messages to one peer, and splitting. */
#include "case_ops.h"

/* ---- messages of one group are matched in call order, peer by peer; also messages to oneself ---- */

static void messages(ncclComm_t c, const size_t* size, int n, int self, int crossed) {
  float *s[128], *d[128], *own[16], *back[16];
  for (int k = 0; k < n; k++) {
    s[k] = floats(size[k]), d[k] = floats(size[k]);
    fill(s[k], k, 0, size[k]), blank(d[k], size[k]);
  }
  for (int k = 0; k < self; k++) own[k] = floats(100), back[k] = floats(100), fill(own[k], k + 7 * me, 0, 100), blank(back[k], 100);
  MUST(c, ncclGroupStart());
  for (int k = 0; k < n; k++) {
    MUST(c, me == 0 ? ncclSend(s[k], size[k], ncclFloat32, 1, c, NULL) : ncclRecv(d[k], size[k], ncclFloat32, 0, c, NULL));
    if (k < self) MUST(c, ncclSend(own[k], 100, ncclFloat32, me, c, NULL));
    if (k < self) MUST(c, ncclRecv(back[k], 100, ncclFloat32, me, c, NULL));
    if (crossed && k == n / 2) { /* the same, across two groups */
      MUST(c, ncclGroupEnd());
      MUST(c, ncclGroupStart());
    }
  }
  MUST(c, ncclGroupEnd());
  for (int k = 0; k < n; k++) {
    if (me == 1) same("message", d[k], k, 0, size[k]);
    free(s[k]), free(d[k]);
  }
  for (int k = 0; k < self; k++) same("message to oneself", back[k], k + 7 * me, 0, 100), free(own[k]), free(back[k]);
}

static void messages_body(void) {
  ncclComm_t c = comm_new();
  size_t size[100] = {10, 20, 30};
  NOTE("sends of 10, 20, 30");
  messages(c, size, 3, 0, 0);
  unsigned seed = 3;
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 100; k++) size[k] = (size_t)rand_r(&seed) % (rand_r(&seed) % 8 == 0 ? 100000 : 3000);
    NOTE("100 pairs of random sizes, round %d", round);
    messages(c, size, 100, round > 0 ? 5 : 0, round > 1);
  }
  meet();
  MUST(c, ncclCommDestroy(c));
}

static void swapped_body(void) { /* receives in another order of sizes: an error, no swapped data */
  ncclComm_t c = comm_new();
  float p[30] = {0}, q[30] = {0};
  NOTE("sends of 10, 20 against receives of 20, 10");
  MUST(c, ncclGroupStart());
  MUST(c, me == 0 ? ncclSend(p, 10, ncclFloat32, 1, c, NULL) : ncclRecv(p, 20, ncclFloat32, 0, c, NULL));
  MUST(c, me == 0 ? ncclSend(q, 20, ncclFloat32, 1, c, NULL) : ncclRecv(q, 10, ncclFloat32, 0, c, NULL));
  ncclResult_t got = ncclGroupEnd();
  if (got == ncclSuccess) got = state_after(c, ncclSuccess, 5);
  CHECK(got == ncclInvalidUsage, "gave %d: %s", got, ncclGetLastError(c));
  SAYS(c, "of 10 elements");
  SAYS(c, "of 20 elements");
  meet();
  ncclCommAbort(c);
}

/* ---- splitting ---- */

/* Splits and checks who is where: ranks of a colour are ordered by key, then by old rank. */
static void split_checked(ncclComm_t c, const int* color, const int* key, int n, int with_config) {
  ncclComm_t child = (ncclComm_t)(uintptr_t)1;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  MUST(c, ncclCommSplit(c, color[me], key[me], &child, with_config ? &config : NULL));
  if (color[me] == NCCL_SPLIT_NOCOLOR) {
    CHECK(child == NULL, "no colour, but a communicator %p", (void*)child);
    return;
  }
  int want = 0, size = 0, got = -1, count = -1;
  for (int r = 0; r < n; r++) {
    if (color[r] != color[me]) continue;
    size++;
    want += key[r] < key[me] || (key[r] == key[me] && r < me);
  }
  MUST(c, ncclCommUserRank(child, &got));
  MUST(c, ncclCommCount(child, &count));
  CHECK(got == want && count == size, "rank %d of %d, not %d of %d", got, count, want, size);
  MUST(child, sum_checked(child, 100));
  MUST(child, ncclCommDestroy(child));
}

static void split_body(void) {
  const int none = NCCL_SPLIT_NOCOLOR;
  const int color[6] = {0, 0, 1, 1, none, 0}, odd[6] = {INT_MAX, 3, INT_MAX, 3, INT_MAX, 3};
  const int keys[5][6] = {{5, 4, 3, 2, 1, 0}, {7, 7, 7, 7, 7, 7}, {-1, -2, -3, -4, -5, -6}, {INT_MAX, INT_MIN, 0, INT_MIN, 5, INT_MAX},
                          {0, 1, 2, 3, 4, 5}};
  ncclComm_t c = comm_new(), half = NULL, quarter = NULL, bad = NULL;
  for (int k = 0; k < 5; k++) {
    NOTE("split with keys %d", k);
    split_checked(c, color, keys[k], 6, me == 2 || k == 1);
    split_checked(c, odd, keys[k], 6, 0);
  }
  for (int wrong = 0; wrong < 6; wrong += 4) { /* of all ranks only one; rank 4 would have got a communicator, rank 3 none */
    NOTE("split with colour -5 on rank %d", wrong);
    WANT(ncclInvalidArgument, c, ncclCommSplit(c, me == wrong ? -5 : me == 3 ? none : 0, 0, &bad, NULL));
    SAYS(c, "-5");
    SAYS(c, wrong == 0 ? "rank 0" : "rank 4");
    CHECK(bad == NULL, "a communicator from a split that was refused");
  }
  NOTE("split of a split");
  MUST(c, ncclCommSplit(c, me % 2, me, &half, NULL));
  MUST(half, ncclCommSplit(half, me / 2 == 0, -me, &quarter, NULL));
  MUST(quarter, sum_checked(quarter, 1000));
  NOTE("the parent beside its children");
  MUST(c, sum_checked(c, 1000));
  MUST(half, ncclCommDestroy(half));
  MUST(quarter, sum_checked(quarter, 1000));
  MUST(quarter, ncclCommDestroy(quarter));
  ops_checked(c, 100);
  MUST(c, ncclCommDestroy(c));
}

static void split_absent_body(void) { /* one rank never calls: the limit of init names it, and the parent is as it was */
  setenv("HCCL_INIT_TIMEOUT", "2", 1);
  ncclComm_t c = comm_new(), child = NULL;
  MUST(c, sum_checked(c, 100));
  NOTE("split that rank 3 does not call");
  if (me != 3) {
    double start = now();
    ncclResult_t got = ncclCommSplit(c, 0, me, &child, NULL);
    CHECK(got != ncclSuccess && got != ncclInProgress, "gave %d", got);
    WITHIN(8, start);
    SAYS(c, "3");
    CHECK(child == NULL, "a child all the same");
  }
  meet();
  double start = now();
  ncclCommAbort(c);
  WITHIN(2, start);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "messages")) return job_run(2, 40, messages_body) != 0;
  if (!strcmp(what, "swapped")) return job_run(2, 40, swapped_body) != 0;
  if (!strcmp(what, "split")) return job_run(6, 40, split_body) != 0;
  if (!strcmp(what, "split_absent")) return job_run(4, 40, split_absent_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
