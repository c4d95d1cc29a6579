/* Start-up: ranks that never come, ids and ports used again, many ranks and communicators. */
#include "case_ops.h"

/* ---- a rank that never comes: the others end at the limit with its number, and can start anew ---- */

static ncclComm_t init_late(ncclResult_t* got, double* took) {
  ncclComm_t comm = NULL;
  double start = now();
  *got = ncclCommInitRank(&comm, ranks, job->id[0], me);
  *took = now() - start;
  return comm;
}

static void absent_body(void) {
  const int here = ranks - 1, index = me == 3 ? 2 : me;
  ncclResult_t got;
  double took;
  setenv("HCCL_INIT_TIMEOUT", "2", 1);
  if (me == 2) return; /* the rank that never comes */
  NOTE("init of %d", here);
  sum_checked(comm_of(1, here, index), 100); /* the library is up: what it needs for itself does not count below */
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet_of(here);
  NOTE("init with rank 2 absent");
  int fds = descriptors(), tasks = threads();
  init_late(&got, &took);
  CHECK(got != ncclSuccess && got != ncclInProgress, "init without rank 2 gave %d", got);
  CHECK(took > 1.9 && took < 6, "took %.2f s, the limit is 2", took);
  SAYS(NULL, "2");
  SAYS(NULL, "missing");
  for (double end = now() + 3; descriptors() > fds && now() < end;) usleep(1000); /* closed in the background */
  CHECK(descriptors() <= fds, "%d descriptors before, %d after", fds, descriptors());
  CHECK(threads() <= tasks + 3, "%d threads before, %d after", tasks, threads()); /* Go keeps a few that were blocked */
  meet_of(here);
  setenv("HCCL_INIT_TIMEOUT", "30", 1);
  NOTE("init of %d after the failure", here);
  ncclComm_t comm = comm_of(2, here, index);
  MUST(comm, sum_checked(comm, 1000));
  MUST(comm, ncclCommDestroy(comm));
}

/* The id's maker is no rank and has exited; the ranks have inherited nothing from it. */
static void maker_gone_body(void) {
  ncclResult_t got;
  double took;
  setenv("HCCL_INIT_TIMEOUT", "2", 1);
  if (me == 3) {
    MUST(NULL, ncclGetUniqueId(&job->id[0]));
    return;
  }
  wait_ended(3);
  NOTE("init with an id whose maker has ended");
  init_late(&got, &took);
  CHECK(got != ncclSuccess && got != ncclInProgress, "init gave %d", got);
  CHECK(took < 6, "took %.2f s, the limit is 2", took);
  CHECK(ncclGetLastError(NULL)[0] != 0, "no text");
}

/* ---- several ids: ranks 0, 2 and 5 make one each, and each collects a part of the ranks ---- */

static ncclResult_t init_shared_out(ncclComm_t* comm, int n, int maker_of_second) {
  const int makers[] = {0, maker_of_second, 5};
  for (int k = 0; k < 3; k++)
    if (me == makers[k]) MUST(NULL, ncclGetUniqueId(&job->id[k]));
  meet();
  if (me == maker_of_second && n < ranks) return ncclSuccess; /* it ends instead */
  if (n < ranks) wait_ended(maker_of_second);
  return ncclCommInitRankScalable(comm, n, me, 3, job->id, NULL);
}

static void ids_body(void) {
  ncclComm_t comm;
  NOTE("init with three ids");
  MUST(NULL, init_shared_out(&comm, ranks, 2));
  MUST(comm, sum_checked(comm, 1000));
  MUST(comm, ncclCommDestroy(comm));
}

static void ids_gone_body(void) {
  ncclComm_t comm = NULL;
  setenv("HCCL_INIT_TIMEOUT", "2", 1);
  NOTE("init with three ids, of which the second one's maker has ended");
  double start = now();
  ncclResult_t got = init_shared_out(&comm, ranks - 1, ranks - 1);
  if (me == ranks - 1) return;
  CHECK(got != ncclSuccess && got != ncclInProgress && comm == NULL, "init gave %d", got);
  WITHIN(6, start);
  SAYS(NULL, "not reachable");
}

/* ---- one id, used again ---- */

static void id_again_body(void) {
  int n = 0;
  setenv("HCCL_INIT_TIMEOUT", "10", 1);
  NOTE("first init");
  ncclComm_t first = comm_new(), more = NULL;
  for (int turn = 0; turn < 2; turn++) { /* with the first alive, then with nothing alive */
    double start = now();
    NOTE("init %d with the id of the first", turn + 2);
    ncclResult_t got = ncclCommInitRank(&more, ranks, job->id[0], me);
    WITHIN(5, start);
    job->word[me][0] = got;
    meet();
    CHECK(job->word[0][0] == job->word[1][0], "rank 0 got %ld, rank 1 got %ld", job->word[0][0], job->word[1][0]);
    if (got == ncclSuccess) {
      MUST(more, sum_checked(more, 1000));
      ncclCommDestroy(more);
    } else {
      CHECK(got == ncclInvalidUsage, "the id used again: %d, not ncclInvalidUsage", got);
      SAYS(NULL, "already");
    }
    ncclCommCount(first != NULL ? first : more, &n);
    if (first != NULL) {
      MUST(first, sum_checked(first, 1000));
      MUST(first, ncclCommDestroy(first));
      first = NULL;
    }
    meet();
  }
}

/* ---- a fixed address, job after job, some of them broken ---- */

static int job_number;

static void fixed_body(void) {
  int all[4] = {0}, mine = job_number;
  int broken = job_number % 3 == 2;
  ncclComm_t comm = comm_of(0, ranks, me);
  NOTE("job %d", job_number);
  if (broken && me == 1) {
    job->doomed[1] = 1;
    kill(getpid(), SIGKILL);
  }
  ncclResult_t got = ncclAllGather(&mine, all, 1, ncclInt32, comm, NULL);
  CHECK(broken || got == ncclSuccess, "all-gather gave %d: %s", got, ncclGetLastError(comm));
  CHECK(!broken || got == ncclRemoteError, "all-gather without rank 1 gave %d: %s", got, ncclGetLastError(comm));
  for (int r = 0; r < ranks && got == ncclSuccess; r++) CHECK(all[r] == job_number, "rank %d is of job %d", r, all[r]);
  if (broken) ncclCommAbort(comm);
  else MUST(comm, ncclCommDestroy(comm));
}

static int fixed(void) {
  int faults = 0;
  for (job_number = 0; job_number < times(12, 60) && faults == 0; job_number++) faults += job_run(4, 30, fixed_body);
  return faults;
}

/* ---- many ---- */

static void crowd_body(void) {
  double start = now();
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 100));
  WITHIN(15, start); /* 6 on a machine that does nothing else */
  MUST(comm, ncclCommDestroy(comm));
}

static void series_body(void) {
  enum { N = 32 };
  ncclComm_t made[N], parent = comm_new();
  struct span s = span_begin("cpu ");
  for (int k = 0; k < N; k++) {
    NOTE("communicator %d by id", k);
    made[k] = comm_of(k, ranks, me);
  }
  double by_id = span_end(s) / N;
  for (int k = 0; k < N; k++) ncclCommDestroy(made[k]);
  s = span_begin("cpu ");
  for (int k = 0; k < N; k++) {
    NOTE("split %d", k);
    MUST(parent, ncclCommSplit(parent, (me + k) % 2, me, &made[k], NULL));
  }
  double by_split = span_end(s) / N;
  for (int k = 0; k < N; k++) {
    if (k % 8 == 0) MUST(made[k], sum_checked(made[k], 10));
    ncclCommDestroy(made[k]);
  }
  CHECK(by_id < 0.1, "%.0f ms for each by id", by_id * 1e3);
  CHECK(by_split < 0.05, "%.0f ms for each by split", by_split * 1e3);
  MUST(parent, ncclCommDestroy(parent));
}

/* ---- many as threads: says how long the slowest took, and what its process holds ---- */

static int threads_of_each; /* ranks of a process */
static pthread_barrier_t all_here;
static double slowest_init[RANKS * 64];

/* A line of /proc/self/status. */
static long status_kb(const char* name) {
  char line[256];
  long kb = -1;
  FILE* f = fopen("/proc/self/status", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (!strncmp(line, name, strlen(name))) kb = atol(line + strlen(name));
  if (f != NULL) fclose(f);
  return kb;
}

static void* one_of_many(void* arg) {
  const int t = (int)(intptr_t)arg, n = ranks * threads_of_each, rank = me * threads_of_each + t;
  ncclComm_t comm = NULL;
  long mine = rank, sum = 0;
  double start = now();
  MUST(NULL, ncclCommInitRank(&comm, n, job->id[0], rank));
  slowest_init[t] = now() - start;
  MUST(comm, ncclAllReduce(&mine, &sum, 1, ncclInt64, ncclSum, comm, NULL));
  CHECK(sum == (long)n * (n - 1) / 2, "the sum of %d ranks is %ld", n, sum);
  pthread_barrier_wait(&all_here);
  if (t == 0) {
    double slowest = 0;
    for (int k = 0; k < threads_of_each; k++) slowest = slowest_init[k] > slowest ? slowest_init[k] : slowest;
    printf("process %d: init %.2f s, %ld MiB of its own, %ld MiB shared, %d descriptors, %d threads\n", me, slowest,
           status_kb("RssAnon:") >> 10, status_kb("RssShmem:") >> 10, descriptors(), threads());
  }
  pthread_barrier_wait(&all_here);
  MUST(comm, ncclCommDestroy(comm));
  return NULL;
}

static void threads_body(void) {
  static pthread_t id[64 * RANKS];
  NOTE("init of %d ranks", ranks * threads_of_each);
  setenv("HCCL_INIT_TIMEOUT", "60", 1);
  pthread_barrier_init(&all_here, NULL, (unsigned)threads_of_each);
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet();
  for (int t = 0; t < threads_of_each; t++) {
    int e = pthread_create(&id[t], NULL, one_of_many, (void*)(intptr_t)t);
    CHECK(e == 0, "thread %d: %s", t, strerror(e));
  }
  for (int t = 0; t < threads_of_each; t++) pthread_join(id[t], NULL);
}

/* ---- rounds that strangers disturb: the driver reads the slowest round and knocks meanwhile ---- */

static void rounds_body(void) {
  double slowest = 0;
  int fds = 0;
  setenv("HCCL_INIT_TIMEOUT", "20", 1);
  for (int k = 0; k < times(60, 300); k++) {
    double start = now();
    NOTE("round %d", k);
    ncclComm_t comm = comm_new();
    for (int i = 0; i < 20; i++) MUST(comm, sum_checked(comm, 20000));
    meet(); /* what strangers hold is closed with the communicator */
    MUST(comm, ncclCommDestroy(comm));
    meet();
    double took = now() - start;
    if (k == 1) fds = descriptors();
    if (k > 0 && took > slowest) slowest = took; /* the first starts the library */
  }
  if (me == 0) printf("slowest %.3f\n", slowest);
  job->word[me][0] = descriptors() - fds;
  CHECK(job->word[me][0] < 60, "%ld descriptors more than after two rounds", job->word[me][0]); /* 50 may still be held */
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "absent")) return job_run(4, 30, absent_body) != 0;
  if (!strcmp(what, "maker_gone")) return job_run(4, 30, maker_gone_body) != 0;
  if (!strcmp(what, "ids")) return job_run(8, 30, ids_body) != 0;
  if (!strcmp(what, "ids_gone")) return job_run(8, 30, ids_gone_body) != 0;
  if (!strcmp(what, "id_again")) return job_run(2, 40, id_again_body) != 0;
  if (!strcmp(what, "fixed")) return fixed() != 0;
  if (!strcmp(what, "crowd")) return job_run(64, 60, crowd_body) != 0;
  if (!strcmp(what, "series")) return job_run(8, 60, series_body) != 0;
  if (!strcmp(what, "threads")) {
    threads_of_each = argc > 2 ? atoi(argv[2]) : 256;
    return job_run(4, 120, threads_body) != 0;
  }
  if (!strcmp(what, "rounds")) return job_run(4, 60, rounds_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
