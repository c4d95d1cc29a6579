/* Buffers that stay registered while the program frees, moves or drops their memory: it is told, and
   nothing waits for ever. */
#include "case_log.h"

#define SIZE ((size_t)8 << 20)

/* ---- what the program is told ---- */

static void unmap_all(char* p) { munmap(p, SIZE); }
static void unmap_some(char* p) { munmap(p + SIZE / 2, 4096); }
static void map_over(char* p) { map_at(p, SIZE); }
static void drop(char* p) { madvise(p, SIZE / 2, MADV_DONTNEED); }
static void move(char* p) {
  void* to = mremap(p, SIZE, SIZE * 2, MREMAP_MAYMOVE);
  CHECK(to != MAP_FAILED && to != (void*)p, "mremap gave %p: %s", to, strerror(errno));
}

static const struct {
  void (*change)(char*);
  const char* how;
} changes[] = {{unmap_all, "unmapped"}, {unmap_some, "unmapped"}, {map_over, "unmapped"}, {drop, "dropped"}, {move, "moved"}};

static void check_warnings(int want) {
  int n = said_soon(want, " was ", "ncclCommDeregister");
  CHECK(n == want, "%d warnings, want %d", n, want);
}

static void freed_body(void) {
  ncclComm_t c = comm_of(0, 1, 0), second = comm_of(1, 1, 0);
  char where[64];
  int warnings = 0;
  for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
    NOTE("%s %d", changes[k].how, (int)k);
    void *h = NULL, *again = NULL, *other = NULL, *twice = NULL;
    char* p = map_at(NULL, SIZE + 4096);
    mprotect(p + SIZE, 4096, PROT_NONE); /* it cannot grow where it is */
    size_t n = SIZE - 100 - k; /* the address may be that of the last round */
    snprintf(where, sizeof where, "%zu bytes at %p was", n, (void*)p);
    MUST(c, ncclCommRegister(c, p, n, &h));
    MUST(c, ncclCommRegister(c, p, 100, &again));
    MUST(second, ncclCommRegister(second, p, SIZE, &other));
    changes[k].change(p);
    CHECK(said_soon(1, where, changes[k].how) == 1, "%d lines say \"%s\" and %s", said(where, changes[k].how), where, changes[k].how);
    warnings += 3;
    map_at(p, SIZE); /* now at the latest those are told whose memory was still there */
    MUST(c, ncclCommRegister(c, p, SIZE, &twice)); /* acts upon all that has happened */
    check_warnings(warnings);
    MUST(c, ncclCommDeregister(c, h));
    MUST(c, ncclCommDeregister(c, again));
    MUST(second, ncclCommDeregister(second, other));
    MUST(c, ncclCommDeregister(c, twice));
    munmap(p, SIZE + 4096);
  }
  NOTE("freed after it was deregistered");
  for (int k = 0; k < 100; k++) {
    void* h = NULL;
    char* p = malloc(SIZE);
    MUST(c, ncclCommRegister(c, p, SIZE, &h));
    MUST(c, ncclCommDeregister(c, h));
    free(p);
  }
  check_warnings(warnings);
  MUST(c, ncclCommDestroy(c));
  MUST(second, ncclCommDestroy(second));
  unlink(log_file);
}

/* ---- threads and signal handlers that free ---- */

static _Atomic(char*) spare;
static _Atomic long handled;

static void free_spare(int sig) {
  (void)sig;
  char* p = atomic_exchange(&spare, NULL);
  if (p != NULL) munmap(p, 1 << 20), handled++;
}

struct worker {
  ncclComm_t comm;
  unsigned seed;
  _Atomic int* stop;
};

static void* free_and_register(void* arg) {
  struct worker* w = arg;
  enum { N = 8 };
  char* p[N] = {NULL};
  while (!*w->stop) {
    int k = rand_r(&w->seed) % N;
    size_t n = (size_t)(rand_r(&w->seed) % 64 + 1) << 14;
    void* h = NULL;
    if (p[k] == NULL) p[k] = malloc(n), p[k][0] = 1;
    else n = 1 << 14;
    if (ncclCommRegister(w->comm, p[k], n, &h) != ncclSuccess) FAULT("%s", ncclGetLastError(w->comm));
    else ncclCommDeregister(w->comm, h);
    if (rand_r(&w->seed) % 4 == 0) p[k] = realloc(p[k], (size_t)4 << 20);
    else free(p[k]), p[k] = NULL;
  }
  for (int k = 0; k < N; k++) free(p[k]);
  return NULL;
}

static void threads_body(void) {
  enum { THREADS = 4 };
  ncclComm_t c = comm_of(0, ranks, me);
  _Atomic int stop = 0;
  pthread_t t[THREADS];
  struct worker w[THREADS];
  struct sigaction act = {.sa_handler = free_spare, .sa_flags = SA_RESTART | SA_ONSTACK};
  sigaction(SIGUSR1, &act, NULL);
  for (int k = 0; k < THREADS; k++) {
    w[k] = (struct worker){c, (unsigned)(k + 1 + me * 10), &stop};
    pthread_create(&t[k], NULL, free_and_register, &w[k]);
  }
  enum { N = 1 << 14 };
  float* x = malloc(N * sizeof *x);
  for (int round = 0; round < times(300, 10000); round++) {
    NOTE("round %d", round);
    void* h = NULL;
    char* p = map_at(NULL, 1 << 20);
    MUST(c, ncclCommRegister(c, p, 1 << 20, &h));
    MUST(c, ncclCommDeregister(c, h));
    spare = p;
    pthread_kill(t[round % THREADS], SIGUSR1); /* in malloc, in the library, wherever it is */
    for (int k = 0; k < N; k++) x[k] = (float)(me + 1);
    MUST(c, ncclAllReduce(x, x, N, ncclFloat, ncclSum, c, NULL));
    CHECK(x[round] == (float)(ranks * (ranks + 1)) / 2, "element %d is %g", round, (double)x[round]);
    while (spare != NULL) sched_yield();
  }
  stop = 1;
  for (int k = 0; k < THREADS; k++) pthread_join(t[k], NULL);
  CHECK(handled > 0, "no handler has freed anything");
  free(x);
  MUST(c, ncclCommDestroy(c));
}

/* ---- fork ---- */

static void fork_body(void) {
  ncclComm_t c = comm_of(0, 1, 0);
  void* h = NULL;
  char* p = map_at(NULL, SIZE);
  memset(p, 1, SIZE);
  MUST(c, ncclCommRegister(c, p, SIZE, &h));
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    madvise(p, SIZE / 2, MADV_DONTNEED);
    munmap(p + SIZE / 2, SIZE / 4);
    mremap(p, SIZE / 4, SIZE * 2, MREMAP_MAYMOVE);
    p[SIZE - 1] = 2;
    munmap(p, SIZE);
    raise(SIGSTOP); /* lives on with whatever it has inherited */
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  CHECK(WIFSTOPPED(status), "the child ended with status %#x", (unsigned)status);
  CHECK(said(" was ", "ncclCommDeregister") == 0, "the parent was told of what the child did");
  NOTE("unmap beside the child");
  munmap(p, SIZE);
  CHECK(said_soon(1, " was ", "unmapped") == 1, "%d warnings", said(" was ", "unmapped"));
  kill(child, SIGCONT);
  waitpid(child, &status, 0);
  CHECK(status == 0, "the child ended with status %#x", (unsigned)status);
  MUST(c, ncclCommDeregister(c, h));
  MUST(c, ncclCommDestroy(c));
  unlink(log_file);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "freed")) return log_to_file("WARN"), job_run(1, 60, freed_body) != 0;
  if (!strcmp(what, "threads")) return job_run(2, 60, threads_body) != 0;
  if (!strcmp(what, "fork")) return log_to_file("WARN"), job_run(1, 60, fork_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
