/* Limits of the process under which a Go runtime cannot start, or the kernel would kill us: the first call that needs the core is an
   error whose text names the limit, or it works without what is refused. */
#include "hostile.h"

static void set(int what, rlim_t value) {
  struct rlimit limit = {value, value};
  CHECK(setrlimit((__typeof__(RLIMIT_AS))what, &limit) == 0, "setrlimit");
}

static void refused(const char* word) {
  void* p;
  WANT(ncclSystemError, ncclMemAlloc(&p, 4096));
  CHECK(strstr(ncclGetLastError(NULL), word) != NULL, "the text lacks %s", word);
}

static void address_space(void) {
  set(RLIMIT_AS, (rlim_t)1 << 30);
  refused("ulimit -v");
}

static void descriptors(void) {
  set(RLIMIT_NOFILE, 6);
  refused("ulimit -n");
}

/* root is not held to the limit, nobody is. */
static void threads(void) {
  set(RLIMIT_NPROC, 1);
  if (getuid() == 0 && setuid(65534) != 0) CHECK(0, "setuid");
  refused("ulimit -u");
}

/* The kernel answers growth of any file beyond the limit, also of unnamed memory, with a signal. */
static void file_size(void) {
  ncclUniqueId id;
  ncclComm_t comms[2];
  float x[2] = {1, 2}, y[2] = {0};
  void* p;
  set(RLIMIT_FSIZE, 512);
  MUST(ncclGetUniqueId(&id));
  MUST(ncclGroupStart());
  for (int r = 0; r < 2; r++) MUST(ncclCommInitRank(&comms[r], 2, id, r));
  MUST(ncclGroupEnd());
  MUST(ncclGroupStart());
  for (int r = 0; r < 2; r++) MUST(ncclAllReduce(&x[r], &y[r], 1, ncclFloat32, ncclSum, comms[r], NULL));
  MUST(ncclGroupEnd());
  CHECK(y[0] == 3 && y[1] == 3, "sums %g and %g", y[0], y[1]);
  MUST(ncclMemAlloc(&p, 1 << 20));
  MUST(ncclMemFree(p));
  for (int r = 0; r < 2; r++) MUST(ncclCommDestroy(comms[r]));
}

enum { COMMS = 3, RANKS = 4, COUNT = 65536 };
static ncclUniqueId ids[COMMS];
static int rank;

static void* all_to_all_and_reduce(void* k) {
  ncclComm_t comm;
  float *x = (float*)calloc(RANKS * COUNT, sizeof *x), *y = (float*)calloc(RANKS * COUNT, sizeof *y);
  MUST(ncclCommInitRank(&comm, RANKS, ids[(long)k], rank));
  for (long i = 0; i < RANKS * COUNT; i++) x[i] = 1;
  for (int n = 0; n < 20 && faults == 0; n++) {
    MUST(ncclAlltoAll(x, y, COUNT, ncclFloat32, comm, NULL));
    MUST(ncclAllReduce(x, y, RANKS * COUNT, ncclFloat32, ncclSum, comm, NULL));
    CHECK(y[0] == RANKS && y[RANKS * COUNT - 1] == RANKS, "sums %g and %g", y[0], y[RANKS * COUNT - 1]);
  }
  MUST(faults == 0 ? ncclCommDestroy(comm) : ncclCommAbort(comm));
  free(x);
  free(y);
  return NULL;
}

/* Several communicators at once in the smallest arena: each has the slots that its operations cannot do without. */
static void arena(void) {
  pthread_t threads[COMMS];
  int links[RANKS][2], status;
  setenv("HCCL_SHM_ARENA", "1048576", 1);
  for (int r = 1; r < RANKS && rank == 0; r++) {
    CHECK(pipe(links[r]) == 0, "pipe");
    if (fork() == 0) {
      rank = r;
      CHECK(read(links[r][0], ids, sizeof ids) == (ssize_t)sizeof ids, "read");
    }
  }
  if (rank == 0) {
    for (int k = 0; k < COMMS; k++) MUST(ncclGetUniqueId(&ids[k]));
    for (int r = 1; r < RANKS; r++) CHECK(write(links[r][1], ids, sizeof ids) == (ssize_t)sizeof ids, "write");
  }
  for (long k = 0; k < COMMS; k++) pthread_create(&threads[k], NULL, all_to_all_and_reduce, (void*)k);
  for (int k = 0; k < COMMS; k++) pthread_join(threads[k], NULL);
  if (rank != 0) exit(faults != 0);
  while (wait(&status) > 0) CHECK(status == 0, "a rank ended with %d", status);
}

int main(int argc, char** argv) {
  static const struct test tests[] = {
    {"address_space", address_space}, {"descriptors", descriptors}, {"threads", threads}, {"file_size", file_size},
    {"arena", arena}};
  return choose(argc, argv, tests, sizeof tests / sizeof *tests);
}
