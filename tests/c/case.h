/* Runs the ranks of a job as processes under a supervisor that never calls the library. The supervisor knows what each rank was
   doing (NOTE) and says so when one dies unasked, or when the job has not ended in time; then it kills what is left. Ranks leave
   faults (CHECK) in a page that all share, so that a rank that is killed by its case takes nothing with it.

     supervisor -+- rank 0      forked before anything is called; the library is linked, but a core starts in ranks only
                 +- rank 1 ...

   A program is one kind of cases; its first argument chooses the case. Only the public header is used. */
#ifndef CASE_H
#define CASE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <nccl.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 64, WORDS = 8, FAULTS = 10 };

struct page { /* shared by the supervisor and all ranks */
  ncclUniqueId id[RANKS];
  _Atomic int arrived, round; /* of meet */
  _Atomic int ended[RANKS];   /* 1: the supervisor has seen the rank's end */
  _Atomic int doomed[RANKS];  /* 1: the case kills this rank or lets it fail */
  _Atomic long word[RANKS][WORDS]; /* for the case, cleared by job_run */
  _Atomic int faults;
  pid_t pid[RANKS];
  char note[RANKS][200];
  char fault[FAULTS][700];
};

static struct page* job;
static int me, ranks; /* this rank, and how many there are */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* How often a case repeats: n, or many times that when a soak asks for it. */
static inline int times(int n, int soak) { return getenv("CASE_SOAK") != NULL ? soak : n; }

#define NOTE(...) snprintf(job->note[me], sizeof job->note[me], __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static void fault(const char* file, int line, const char* fmt, ...) {
  char what[520], doing[101];
  const char* name = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
  va_list args;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  int k = atomic_fetch_add(&job->faults, 1);
  memcpy(doing, job->note[me], 100), doing[100] = 0;
  if (k < FAULTS) snprintf(job->fault[k], sizeof job->fault[k], "%s:%d: rank %d of %d (%s): %s", name, line, me, ranks, doing, what);
}
#define FAULT(...) fault(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond, ...) \
  do { \
    if (!(cond)) FAULT(__VA_ARGS__); \
  } while (0)
#define WANT(result, comm, call) \
  do { \
    int got_ = (int)(call); \
    CHECK(got_ == (int)(result), "%s gave %d, not %d: %s", #call, got_, (int)(result), ncclGetLastError(comm)); \
  } while (0)
/* A call without which the rank cannot go on. */
#define MUST(comm, call) \
  do { \
    int got_ = (int)(call); \
    if (got_ != ncclSuccess) { \
      FAULT("%s gave %d: %s", #call, got_, ncclGetLastError(comm)); \
      job->doomed[me] = 1; /* said already */ \
      fflush(NULL); \
      _exit(4); \
    } \
  } while (0)
/* The text of the last error holds the word. */
#define SAYS(comm, word) \
  CHECK(strcasestr(ncclGetLastError(comm), word) != NULL, "\"%s\" does not say \"%s\"", ncclGetLastError(comm), word)
#define WITHIN(seconds, since) CHECK(now() - (since) < (seconds), "took %.2f s, wanted below %.2f", now() - (since), (double)(seconds))

static void futex_wait(_Atomic int* word, int value) { /* a wake that is lost costs 50 ms, not the job */
  struct timespec t = {0, 50000000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}
static void futex_wake(_Atomic int* word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

/* Waits until n ranks are here: without the library, so that it can be used around faults. */
static void meet_of(int n) {
  int round = job->round;
  if (atomic_fetch_add(&job->arrived, 1) == n - 1) {
    job->arrived = 0;
    atomic_fetch_add(&job->round, 1);
    futex_wake(&job->round);
  }
  while (job->round == round) futex_wait(&job->round, round);
}
static inline void meet(void) { meet_of(ranks); }
static inline void wait_ended(int rank) {
  while (job->ended[rank] == 0) futex_wait(&job->ended[rank], 0);
}
static inline void sleep_for(double s) { /* the delay that a case injects */
  struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {}
}
/* This process dies of SIGKILL in so many seconds, wherever it is then. */
static inline void die_in(double s) {
  struct sigevent e = {0};
  struct itimerspec at = {{0, 0}, {(time_t)s, (long)((s - (double)(time_t)s) * 1e9) + 1}};
  timer_t timer;
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGKILL;
  job->doomed[me] = 1;
  if (timer_create(CLOCK_MONOTONIC, &e, &timer) != 0 || timer_settime(timer, 0, &at, NULL) != 0) FAULT("no timer: %s", strerror(errno));
}

/* A new communicator of all ranks. Slot: where its id is passed on. */
static inline ncclComm_t comm_of(int slot, int n, int rank) {
  ncclComm_t comm = NULL;
  if (rank == 0) MUST(NULL, ncclGetUniqueId(&job->id[slot]));
  meet_of(n);
  MUST(NULL, ncclCommInitRank(&comm, n, job->id[slot], rank));
  return comm;
}
static inline ncclComm_t comm_new(void) { return comm_of(0, ranks, me); }

/* Waits until the asynchronous state is no longer `from`, and returns it. */
static inline ncclResult_t state_after(ncclComm_t comm, ncclResult_t from, double limit) {
  ncclResult_t state = from;
  for (double end = now() + limit; state == from && now() < end;) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) break;
    if (state == from) usleep(500);
  }
  return state;
}

static void tell_threads(int pid) {
  char path[300], text[100];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR* d = opendir(path);
  for (struct dirent* e; d != NULL && (e = readdir(d)) != NULL;) {
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/wchan", pid, e->d_name);
    FILE* f = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
    if (f == NULL) continue;
    size_t n = fread(text, 1, sizeof text - 1, f);
    printf("    thread %s is in %.*s\n", e->d_name, (int)n, text);
    fclose(f);
  }
  if (d != NULL) closedir(d);
}

static int job_left(int n) {
  int left = 0;
  for (int r = 0; r < n; r++) left += job->pid[r] > 0;
  return left;
}
static void job_reap(int n) {
  int status;
  for (int r = 0; r < n; r++) {
    if (job->pid[r] <= 0 || waitpid(job->pid[r], &status, WNOHANG) <= 0) continue;
    job->pid[r] = 0;
    job->ended[r] = 1;
    futex_wake(&job->ended[r]);
    if (status == 0 || job->doomed[r]) continue;
    me = r;
    if (WIFSIGNALED(status)) FAULT("died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else FAULT("ended with status %d", WEXITSTATUS(status));
  }
}
static void job_kill(int n, double limit) {
  printf("hang: no end after %.0f s\n", limit);
  for (int r = 0; r < n; r++) {
    if (job->pid[r] <= 0) continue;
    printf("  rank %d is at: %s\n", r, job->note[r]);
    tell_threads(job->pid[r]);
  }
  for (int r = 0; r < n; r++) {
    if (job->pid[r] <= 0) continue;
    kill(job->pid[r], SIGKILL);
    waitpid(job->pid[r], NULL, 0);
    job->pid[r] = 0;
  }
  atomic_fetch_add(&job->faults, 1);
}

static void job_page(void) { /* once per program */
  if (job == NULL) job = (struct page*)mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Runs body in n processes. Returns the faults of this job; they are printed. */
static int job_run(int n, double limit, void (*body)(void)) {
  sigset_t child, old;
  job_page();
  memset((void*)job, 0, sizeof *job);
  ranks = n;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &old);
  for (int r = 0; r < n; r++) {
    fflush(NULL);
    pid_t pid = fork(); /* not straight into the page: the child would write its 0 over it */
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank never outlives its supervisor */
      sigprocmask(SIG_SETMASK, &old, NULL);
      me = r;
      body();
      exit(0);
    }
    job->pid[r] = pid;
  }
  for (double end = now() + limit; job_reap(n), job_left(n) > 0;) {
    struct timespec t = {0, 100000000};
    sigtimedwait(&child, NULL, &t);
    if (now() > end) job_kill(n, limit);
  }
  sigprocmask(SIG_SETMASK, &old, NULL);
  int faults = job->faults;
  for (int k = 0; k < faults && k < FAULTS; k++) printf("%s\n", job->fault[k]);
  if (faults > FAULTS) printf("and %d more\n", faults - FAULTS);
  return faults;
}
#endif
