/* Manners in the host's process: threads, forks, signals, several communicators at once. */
#include "case_ops.h"

/* ---- groups belong to threads ---- */

static ncclComm_t comm_shared;
static ncclResult_t thread_got;
static char thread_said[300];

static void* start_group(void* p) {
  thread_got = ncclGroupStart();
  return p;
}
static void* reduce_alone(void* p) {
  thread_got = sum_checked(comm_shared, 100); /* checked when it returns: the other thread's group does not hold it */
  return p;
}
static void* end_group(void* p) {
  thread_got = ncclGroupEnd();
  snprintf(thread_said, sizeof thread_said, "%s", ncclGetLastError(NULL));
  return p;
}
static void in_thread(void* (*body)(void*)) {
  pthread_t t;
  pthread_create(&t, NULL, body, NULL);
  pthread_join(t, NULL);
}

static void groups_body(void) {
  comm_shared = comm_new();
  NOTE("group start, call and group end in three threads");
  in_thread(start_group);
  CHECK(thread_got == ncclSuccess, "group start gave %d", thread_got);
  in_thread(reduce_alone);
  CHECK(thread_got == ncclSuccess, "all-reduce gave %d", thread_got);
  in_thread(end_group);
  CHECK(thread_got == ncclInvalidUsage, "group end without a start gave %d", thread_got);
  CHECK(strcasestr(thread_said, "group") != NULL, "\"%s\" does not speak of groups", thread_said);
  MUST(comm_shared, sum_checked(comm_shared, 100));
  MUST(comm_shared, ncclCommDestroy(comm_shared));
}

/* ---- threads with communicators of their own; threads on one communicator ---- */

static void* own_thread(void* p) {
  int k = (int)(intptr_t)p;
  ncclComm_t c = NULL;
  MUST(NULL, ncclCommInitRank(&c, ranks, job->id[k], me));
  unsigned seed = (unsigned)k;
  for (int i = 0; i < times(200, 500); i++) {
    int op = (int)((unsigned)rand_r(&seed) % OPS);
    MUST(c, op_checked(op, c, (size_t)rand_r(&seed) % 2000, i % ranks));
  }
  MUST(c, ncclCommDestroy(c));
  return NULL;
}
static void threads_body(void) {
  pthread_t t[8];
  for (int k = 0; k < 8 && me == 0; k++) MUST(NULL, ncclGetUniqueId(&job->id[k]));
  meet();
  NOTE("8 threads, each with its own communicator");
  for (int k = 0; k < 8; k++) pthread_create(&t[k], NULL, own_thread, (void*)(intptr_t)k);
  for (int k = 0; k < 8; k++) pthread_join(t[k], NULL);
}

static void* same_thread(void* p) {
  for (int i = 0; i < 100; i++) MUST(comm_shared, sum_checked(comm_shared, 500));
  return p;
}
static void one_body(void) { /* the calls are equal on all ranks, so their order does not matter */
  pthread_t t[4];
  comm_shared = comm_new();
  NOTE("4 threads on one communicator");
  for (int k = 0; k < 4; k++) pthread_create(&t[k], NULL, same_thread, NULL);
  for (int k = 0; k < 4; k++) pthread_join(t[k], NULL);
  MUST(comm_shared, ncclCommDestroy(comm_shared));
}

/* ---- forks ---- */

static void at_end(void) {}

static void child_calls(ncclComm_t c) { /* in a forked child: an error in good time, no hang */
  float x = 1;
  int version = 0;
  double start = now();
  if (ncclGetVersion(&version) != ncclSuccess) _exit(2);
  if (ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, c, NULL) == ncclSuccess) _exit(3);
  if (ncclCommDestroy(c) == ncclSuccess) _exit(4);
  _exit(now() - start < 2 ? 0 : 5);
}

static void fork_one(ncclComm_t c, int k) {
  switch (k) {
    case 0: usleep(50000); _exit(0);
    case 1: execl("/bin/true", "true", (char*)NULL); _exit(9);
    case 2: atexit(at_end); exit(0);
    case 3: child_calls(c); break;
    default: _exit(system("true") == 0 ? 0 : 7);
  }
}
static void fork_body(void) {
  ncclComm_t c = comm_new();
  pid_t child[8];
  for (int k = 0; k < 8; k++) {
    NOTE("fork %d", k);
    MUST(c, sum_checked(c, 30000));
    if ((child[k] = fork()) == 0) fork_one(c, k % 5);
    MUST(c, sum_checked(c, 30000));
  }
  FILE* pipe = popen("echo out", "r");
  char line[8] = "";
  CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && !strcmp(line, "out\n"), "popen read \"%s\"", line);
  if (pipe != NULL) pclose(pipe);
  for (int k = 0; k < 8; k++) {
    int status = -1;
    while (waitpid(child[k], &status, 0) < 0 && errno == EINTR) {}
    MUST(c, sum_checked(c, 3000));
    CHECK(status == 0, "child %d ended with status %#x", k, status);
  }
  ops_checked(c, 5000);
  MUST(c, ncclCommDestroy(c));
}

static void fork_first_body(void) { /* the library is loaded and idle; the child makes the communicator, twice from one parent */
  int version = 0;
  ncclGetVersion(&version);
  for (int k = 0; k < 2; k++) {
    NOTE("child %d makes a communicator", k);
    pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      ncclComm_t c = comm_of(k, ranks, me);
      MUST(c, sum_checked(c, 100));
      MUST(c, ncclCommDestroy(c));
      exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "child ended with status %#x", status);
  }
}

/* ---- signals ---- */

static volatile sig_atomic_t caught[65];
static char other_stack[65536];

static void on_signal(int s, siginfo_t* info, void* context) {
  (void)context;
  caught[s] = info->si_signo == s ? 1 : -1;
}
static void install(int s, int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = on_signal;
  a.sa_flags = SA_SIGINFO | SA_RESTART | flags;
  sigaction(s, &a, NULL);
}
static void signals_body(void) {
  static const int before[] = {SIGINT, SIGHUP, SIGPIPE, SIGSEGV}, after[] = {SIGTERM, SIGCHLD, SIGUSR1};
  stack_t stack = {other_stack, 0, sizeof other_stack};
  struct sigaction now_set;
  sigaltstack(&stack, NULL);
  for (int k = 0; k < 4; k++) install(before[k], before[k] == SIGSEGV ? SA_ONSTACK : 0);
  ncclComm_t c = comm_new();
  for (int k = 0; k < 3; k++) install(after[k], 0);
  for (int round = 0; round < 3; round++) {
    MUST(c, sum_checked(c, 1000));
    for (int k = 0; k < 7; k++) {
      int s = k < 4 ? before[k] : after[k - 4];
      raise(s);
      CHECK(caught[s] == 1, "signal %d: %d", s, (int)caught[s]);
    }
    memset((void*)caught, 0, sizeof caught);
  }
  int ends[2];
  if (pipe(ends) == 0) close(ends[0]);
  CHECK(write(ends[1], "x", 1) < 0 && errno == EPIPE, "a closed pipe: %s", strerror(errno));
  CHECK(caught[SIGPIPE] == 1, "a closed pipe: SIGPIPE caught %d times", (int)caught[SIGPIPE]);
  static const int untouched[] = {SIGBUS, SIGFPE, SIGQUIT, SIGABRT, SIGALRM, SIGPROF, SIGURG, SIGUSR2, SIGILL};
  for (size_t k = 0; k < sizeof untouched / sizeof untouched[0]; k++) {
    sigaction(untouched[k], NULL, &now_set);
    CHECK(now_set.sa_handler == SIG_DFL, "signal %d has a handler that is not ours", untouched[k]);
  }
  MUST(c, ncclCommDestroy(c));
}

static void sigterm_body(void) { /* rank 0 is blocked in an all-reduce that nobody joins, with the default action */
  ncclComm_t c = comm_new();
  MUST(c, sum_checked(c, 10));
  meet();
  if (me == 0) {
    job->doomed[0] = 1;
    NOTE("blocked");
    job->word[0][0] = 1;
    sum_checked(c, 10);
    FAULT("came back from an all-reduce that nobody joined");
    return;
  }
  while (job->word[0][0] == 0) usleep(1000);
  sleep_for(0.3); /* for it to be in the call, asleep */
  double start = now();
  kill(job->pid[0], SIGTERM);
  wait_ended(0);
  WITHIN(2, start);
  ncclCommAbort(c);
}

/* ---- several communicators, each with its thread, begun in opposite order ---- */

static ncclComm_t three[3];

static void* cross_thread(void* p) {
  int k = (int)(intptr_t)p;
  unsigned seed = (unsigned)k + 1;
  for (int i = 0; i < times(300, 1000); i++) {
    MUST(three[k], sum_checked(three[k], 1 + (size_t)rand_r(&seed) % (i % 50 == 0 ? 200000 : 3000)));
  }
  return NULL;
}
static void cross_body(void) {
  pthread_t t[3];
  for (int k = 0; k < 3; k++) three[k] = comm_of(k, ranks, me);
  NOTE("three threads, three communicators");
  for (int k = 0; k < 3; k++) pthread_create(&t[k], NULL, cross_thread, (void*)(intptr_t)(me % 2 ? 2 - k : k));
  for (int k = 0; k < 3; k++) pthread_join(t[k], NULL);
  for (int k = 0; k < 3; k++) MUST(three[k], ncclCommDestroy(three[k]));
}

/* One thread, crossed order: it cannot complete; the limit ends it, and each rank says whom it misses in which call. */
static void crossed_body(void) {
  setenv("HCCL_TIMEOUT", "1", 1);
  for (int k = 0; k < 2; k++) three[k] = comm_of(k, ranks, me);
  meet();
  NOTE("crossed order in one thread");
  double start = now();
  ncclComm_t first = three[me % 2];
  ncclResult_t got = sum_checked(first, 256);
  CHECK(got != ncclSuccess && got != ncclInProgress, "gave %d", got);
  WITHIN(6, start);
  SAYS(first, me % 2 ? "0" : "1");
  SAYS(first, "missing");
  meet();
  for (int k = 0; k < 2; k++) ncclCommAbort(three[k]);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "groups")) return job_run(2, 40, groups_body) != 0;
  if (!strcmp(what, "threads")) return job_run(2, 60, threads_body) != 0;
  if (!strcmp(what, "one")) return job_run(2, 40, one_body) != 0;
  if (!strcmp(what, "fork")) return job_run(2, 40, fork_body) != 0;
  if (!strcmp(what, "fork_first")) return job_run(2, 40, fork_first_body) != 0;
  if (!strcmp(what, "signals")) return job_run(2, 40, signals_body) != 0;
  if (!strcmp(what, "sigterm")) return job_run(2, 40, sigterm_body) != 0;
  if (!strcmp(what, "cross")) return job_run(4, 60, cross_body) != 0;
  if (!strcmp(what, "crossed")) return job_run(2, 60, crossed_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
