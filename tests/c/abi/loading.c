/* Opening the core: when, with what of the host hidden, and that everything is as before afterwards. Run with GODEBUG and others in
   the environment. argument: ok, missing (no core beside the library) or other (a core of another build). */
#include "test.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>

static int threads(void) {
  int n = 0;
  DIR* d = opendir("/proc/self/task");
  for (struct dirent* e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

/* Everything that must not open the core. */
static void test_quiet(void) {
  int v = 0, n = 0;
  const char** keys;
  ncclUniqueId id;
  MUST(ncclGetVersion(&v));
  CHECK(v == 23203 && v == NCCL_VERSION_CODE, "version %d", v);
  WANT(ncclInvalidArgument, ncclGetVersion(NULL));
  for (int k = -2; k < 12; k++) {
    const char* text = ncclGetErrorString((ncclResult_t)k);
    CHECK(text != NULL && text[0] != 0, "no text for %d", k);
  }
  MUST(ncclParamGetAllParameterKeys(&keys, &n));
  REFUSED("NULL", NULL, ncclAllReduce(NULL, NULL, 1, ncclFloat, ncclSum, NULL, NULL));
  MUST(ncclGroupStart());
  MUST(ncclGroupEnd());
  CHECK(threads() == 1, "%d threads", threads());
  MUST(ncclGetUniqueId(&id));
  CHECK(fake() == NULL, "the core was opened without need");
}

static void test_opened(void) {
  static const char* const names[] = {"GODEBUG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK"};
  char before[5][64];
  sigset_t mask, after;
  int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  for (int k = 0; k < 5; k++) snprintf(before[k], sizeof before[k], "%s", getenv(names[k]));
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  ncclComm_t comm = make(1, 0);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  CHECK(fake() != NULL, "the core was not opened");
  CHECK(fake()->signals_blocked, "signals were not blocked while the core was loaded");
  CHECK(fake()->timer_slack >= 1000000, "Go's threads would be woken on the spot: timer slack %d ns", fake()->timer_slack);
  CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == slack, "the caller's timer slack has changed");
  CHECK(fake()->go_entries == 0, "the core saw %d entries that are meant for the host", fake()->go_entries);
  for (int k = 1; k < 32; k++) CHECK(sigismember(&after, k) == (k == SIGUSR2), "the mask of signal %d has changed", k);
  for (int k = 0; k < 5; k++) CHECK(getenv(names[k]) != NULL && !strcmp(getenv(names[k]), before[k]), "%s has changed", names[k]);
  const char* path = fake()->services->path();
  CHECK(path[0] == '/' && strstr(path, "/libnccl.so.2") != NULL, "path \"%s\"", path);
  MUST(ncclCommDestroy(comm));
}

static void* enter(void* comm) {
  ncclResult_t state;
  MUST(ncclCommGetAsyncError((ncclComm_t)comm, &state));
  return (void*)(intptr_t)fake()->attached;
}

/* The core is told how many threads enter it, as they come and go. */
static void test_threads(void) {
  ncclComm_t comm = make(1, 0);
  for (int k = 0; k < 3; k++) {
    pthread_t t;
    void* seen;
    pthread_create(&t, NULL, enter, comm);
    pthread_join(t, &seen);
    CHECK((intptr_t)seen == 2, "thread %d was told of %d threads", k, (int)(intptr_t)seen);
  }
  MUST(ncclCommDestroy(comm));
}

static void test_cannot(const char* word) {
  ncclUniqueId id;
  ncclComm_t comm;
  void* p;
  MUST(ncclGetUniqueId(&id));
  for (int k = 0; k < 2; k++) {
    WANT(ncclSystemError, ncclCommInitRank(&comm, 1, id, 0));
    CHECK(comm == NULL && strstr(ncclGetLastError(NULL), word) != NULL, "\"%s\"", ncclGetLastError(NULL));
  }
  WANT(ncclSystemError, ncclMemAlloc(&p, 8));
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "ok";
  if (!strcmp(how, "missing")) test_cannot("libhccl_core.so");
  else if (!strcmp(how, "other")) test_cannot("not built together");
  else {
    test_quiet();
    test_opened();
    test_threads();
  }
  return test_end();
}
