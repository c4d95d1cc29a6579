/* Death, abort and teardown: whoever is left hears of it, in time, and can start again. */
#include "case_ops.h"

enum { MI = 1 << 20 };
static const char* how;
static double moment;

/* What a survivor finds when rank `dead` is gone: the error, its name in the text, an end by abort, and quiet threads. */
static void bereaved(ncclComm_t comm, ncclResult_t got, double since, int dead) {
  char name[16];
  snprintf(name, sizeof name, "rank %d", dead);
  CHECK(got == ncclRemoteError, "gave %d: %s", got, ncclGetLastError(comm));
  WITHIN(4, since); /* 2 on a machine that does nothing else */
  SAYS(comm, name);
  ncclResult_t state = ncclSuccess;
  WANT(ncclSuccess, comm, ncclCommGetAsyncError(comm, &state));
  CHECK(state == ncclRemoteError, "asynchronous error %d", state);
  NOTE("abort");
  double start = now();
  WANT(ncclSuccess, NULL, ncclCommAbort(comm));
  WITHIN(2, start);
  start = cpu_seconds();
  sleep_for(0.2);
  CHECK(cpu_seconds() - start < 0.1, "%.3f s of processor in 0.2 s after the abort", cpu_seconds() - start);
}

/* ---- killed in a loop, or ended by itself; or gone before the others call ---- */

static void killed_body(void) {
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 1000));
  if (me == 2 && !strcmp(how, "kill")) die_in(moment);
  NOTE("all-reduce loop, rank 2 goes by %s", how);
  float *s = floats(MI), *d = floats(MI);
  fill(s, me, 0, MI);
  for (int k = 0;; k++) {
    if (me == 2 && k == 5 && !strcmp(how, "exit")) {
      job->doomed[2] = 1;
      _exit(1);
    }
    if (!strcmp(how, "idle") && k == 5) {
      job->doomed[2] = 1;
      if (me == 2) _exit(1);
      wait_ended(2);
    }
    double start = now();
    ncclResult_t got = ncclAllReduce(s, d, MI, ncclFloat32, ncclSum, comm, NULL);
    if (got == ncclSuccess) continue;
    bereaved(comm, got, start, 2);
    break;
  }
  free(s), free(d);
}

static int killed(void) {
  int faults = 0;
  srand(11);
  for (int k = 0; k < (strcmp(how, "kill") ? 1 : times(5, 20)) && faults == 0; k++) {
    moment = 0.02 + 0.3 * rand() / RAND_MAX;
    faults += job_run(4, 40, killed_body);
  }
  return faults;
}

/* ---- one rank aborts in the middle of a loop ---- */

static void abort_body(void) {
  ncclComm_t comm = comm_new();
  float *s = floats(MI), *d = floats(MI);
  fill(s, me, 0, MI);
  int stopped = !strcmp(how, "stopped");
  for (int k = 0; k < 5; k++) MUST(comm, ncclAllReduce(s, d, MI, ncclFloat32, ncclSum, comm, NULL));
  NOTE("loop with an abort at rank 1");
  if (me == 1) {
    for (int r = 0; r < ranks && stopped; r++) {
      if (r != 1) kill(job->pid[r], SIGSTOP);
    }
    double start = now();
    WANT(ncclSuccess, NULL, ncclCommAbort(comm));
    double took = now() - start;
    for (int r = 0; r < ranks && stopped; r++) {
      if (r != 1) kill(job->pid[r], SIGCONT);
    }
    CHECK(took < 2, "abort took %.2f s", took);
    free(s), free(d);
    return;
  }
  double start = now();
  ncclResult_t got = ncclSuccess;
  while (got == ncclSuccess && now() - start < 20) got = ncclAllReduce(s, d, MI, ncclFloat32, ncclSum, comm, NULL);
  CHECK(got == ncclRemoteError, "gave %d: %s", got, ncclGetLastError(comm));
  WITHIN(5, start);
  SAYS(comm, "rank 1");
  SAYS(comm, "abort");
  WANT(ncclSuccess, NULL, ncclCommAbort(comm));
  free(s), free(d);
}

/* ---- a peer that leaves while messages are pending ---- */

static void pending_body(void) {
  enum { BIG = 4 << 20 };
  float* p = floats(BIG);
  ncclComm_t comm = comm_new();
  fill(p, me, 0, BIG);
  MUST(comm, sum_checked(comm, 10));
  if (me == 1) { /* what it needs is done: a small message to rank 0 is on its way */
    MUST(comm, ncclSend(p, 16, ncclFloat32, 0, comm, NULL));
    MUST(comm, ncclCommDestroy(comm));
    free(p);
    return;
  }
  wait_ended(1);
  double start = now();
  ncclResult_t got;
  if (me == 0) {
    NOTE("recv of a small message that was sent before its sender left");
    got = ncclRecv(p, 16, ncclFloat32, 1, comm, NULL);
    CHECK(got == ncclSuccess || got == ncclRemoteError, "gave %d: %s", got, ncclGetLastError(comm));
    if (got == ncclSuccess) {
      same("the buffered message", p, 1, 0, 16);
      NOTE("recv from a rank that has left");
      got = ncclRecv(p, BIG, ncclFloat32, 1, comm, NULL);
    }
  } else {
    NOTE("send to a rank that has left");
    got = ncclSend(p, BIG, ncclFloat32, 1, comm, NULL);
  }
  CHECK(got == ncclRemoteError, "gave %d: %s", got, ncclGetLastError(comm));
  WITHIN(4, start);
  SAYS(comm, "rank 1");
  ncclCommAbort(comm);
  free(p);
}

/* ---- destroy is no collective ---- */

static void destroy_body(void) {
  ncclComm_t comm = comm_new();
  for (int k = 0; k < 5; k++) ops_checked(comm, 1000);
  meet();
  double start = now();
  if (me == 0) exit(0); /* without destroy */
  if (me == 3) { /* never */
    wait_ended(2);
    _exit(0);
  }
  if (me == 2) {
    wait_ended(1);
    NOTE("finalize after others have gone");
    start = now();
    WANT(ncclSuccess, comm, ncclCommFinalize(comm));
    WITHIN(3, start);
  }
  NOTE("destroy after others have gone");
  WANT(ncclSuccess, NULL, ncclCommDestroy(comm));
  WITHIN(3, start);
}

static void reverse_body(void) {
  ncclComm_t comm[3];
  for (int k = 0; k < 3; k++) comm[k] = comm_of(k, ranks, me);
  for (int k = 0; k < 3; k++) MUST(comm[k], sum_checked(comm[k], 5000));
  for (int k = 0; k < 3; k++) {
    int which = me % 2 ? k : 2 - k;
    NOTE("destroy of communicator %d", which);
    double start = now();
    WANT(ncclSuccess, NULL, ncclCommDestroy(comm[which]));
    WITHIN(3, start);
  }
}

/* ---- again and again: a rank is killed, the rest go on with a new one ---- */

/* Rank r of the job lives in turns: when it is killed its process is replaced by the one that waits for it. Word 0 counts rounds. */
static void again_round(ncclComm_t comm, int round, int victim, double* recovery) {
  float *s = floats(100000), *d = floats(100000);
  fill(s, me, 0, 100000);
  if (me == victim) die_in(0.03);
  ncclResult_t got = ncclSuccess;
  while (got == ncclSuccess) got = ncclAllReduce(s, d, 100000, ncclFloat32, ncclSum, comm, NULL);
  *recovery = now();
  CHECK(got == ncclRemoteError, "round %d: %d: %s", round, got, ncclGetLastError(comm));
  NOTE("round %d, abort", round);
  WANT(ncclSuccess, NULL, ncclCommAbort(comm));
  free(s), free(d);
}

static ncclComm_t again_start(int round, int maker) {
  ncclComm_t comm = NULL;
  NOTE("round %d, init", round);
  if (me == maker) MUST(NULL, ncclGetUniqueId(&job->id[round % RANKS]));
  meet();
  MUST(NULL, ncclCommInitRank(&comm, ranks, job->id[round % RANKS], me));
  for (int k = 0; k < 10; k++) MUST(comm, sum_checked(comm, 1000));
  return comm;
}

/* One life of a rank, from round `from` on; it ends when the rank is the victim or all rounds are done. */
static void again_life(int from, int rounds) {
  ncclUniqueId spare;
  MUST(NULL, ncclGetUniqueId(&spare)); /* what a process needs to make ids stays: it is part of what is compared below */
  ncclComm_t comm = again_start(from, from == 0 ? 0 : (from - 1 + 2) % ranks);
  int fds = 0, tasks = 0;
  for (int round = from; round < rounds; round++) {
    double since;
    int victim = (round + 1) % ranks, maker = (round + 2) % ranks;
    again_round(comm, round, victim, &since);
    comm = again_start(round + 1, maker);
    WITHIN(6, since);
    if (round == from + 1) fds = descriptors(), tasks = threads();
    if (round > from + 1) {
      CHECK(descriptors() <= fds + 2, "%d descriptors after round %d, %d after the second", descriptors(), round, fds);
      CHECK(threads() <= tasks + 6, "%d threads after round %d, %d after the second", threads(), round, tasks);
    }
  }
  MUST(comm, ncclCommDestroy(comm));
}

static void again_body(void) {
  int rounds = times(5, 20);
  for (int from = 0; from <= rounds;) { /* this process only starts the next life */
    pid_t life = fork();
    if (life == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      again_life(from, rounds);
      exit(0);
    }
    int status = 0;
    waitpid(life, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
    job->doomed[me] = 0;
    while ((from + 1) % ranks != me) from++;
    from++; /* the replacement comes in after the round in which its forerunner died */
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  how = argc > 2 ? argv[2] : "";
  if (!strcmp(what, "killed")) return killed() != 0;
  if (!strcmp(what, "abort")) return job_run(4, 40, abort_body) != 0;
  if (!strcmp(what, "pending")) return job_run(3, 40, pending_body) != 0;
  if (!strcmp(what, "destroy")) return job_run(4, 40, destroy_body) != 0;
  if (!strcmp(what, "reverse")) return job_run(4, 40, reverse_body) != 0;
  if (!strcmp(what, "again")) return job_run(4, 90, again_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
