/* What the library costs: descriptors, threads, memory, processor time; registration of memory. */
#include "case_ops.h"

/* ---- made and destroyed over and over, also where that fails ---- */

struct books { int fds, tasks; long maps, rss; };

static long mappings(void) {
  long n = 0;
  int ch;
  FILE* f = fopen("/proc/self/maps", "r");
  while (f != NULL && (ch = fgetc(f)) != EOF) n += ch == '\n';
  if (f != NULL) fclose(f);
  return n;
}
static struct books take_books(void) {
  struct books b = {descriptors(), threads(), mappings(), proc_number("/proc/self/status", "VmRSS")};
  return b;
}
static void balance(const char* what, struct books a, int kib) {
  struct books b = take_books();
  for (double end = now() + 3; (b.fds > a.fds || b.maps > a.maps + 8) && now() < end; b = take_books()) usleep(5000);
  CHECK(b.fds <= a.fds, "%s: %d descriptors, before %d", what, b.fds, a.fds);
  CHECK(b.tasks <= a.tasks + 3, "%s: %d threads, before %d", what, b.tasks, a.tasks); /* of Go, which come and stay */
  CHECK(b.maps <= a.maps + 12, "%s: %ld mappings, before %ld", what, b.maps, a.maps); /* stacks and heaps of such threads */
  CHECK(b.rss <= a.rss + kib, "%s: %ld KiB, before %ld", what, b.rss, a.rss);
}

static void cycle(void) {
  ncclComm_t c = comm_new(), half = NULL;
  MUST(c, sum_checked(c, 1 << 16));
  MUST(c, ncclCommSplit(c, me == 0, 0, &half, NULL));
  MUST(c, op_checked(SEND_RECV, c, 1000, 0));
  MUST(half, ncclCommDestroy(half));
  MUST(c, ncclCommDestroy(c));
}
static void failing(void) { /* rank 2 does not come */
  ncclComm_t c = NULL;
  setenv("HCCL_INIT_TIMEOUT", "0.1", 1);
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet();
  if (me != 2 && ncclCommInitRank(&c, ranks, job->id[0], me) == ncclSuccess) FAULT("init without rank 2 succeeded");
  meet();
  setenv("HCCL_INIT_TIMEOUT", "60", 1);
}
static void aborted(void) {
  ncclComm_t c = comm_new();
  float x[1000] = {0};
  if (me == 1) ncclCommAbort(c);
  else if (ncclAllReduce(x, x, 1000, ncclFloat32, ncclSum, c, NULL) == ncclSuccess) FAULT("an all-reduce without rank 1 succeeded");
  if (me != 1) ncclCommAbort(c);
  meet();
}
static void cycles_body(void) {
  static void (*const each[])(void) = {cycle, failing, aborted};
  static const char* const name[] = {"init and destroy", "init that fails", "abort"};
  for (int k = 0; k < 3; k++) {
    int n = k == 0 ? times(120, 1000) : times(15, 200);
    struct books books = take_books();
    for (int i = 0; i < n; i++) {
      if (i == n / 4) books = take_books(); /* by then all that stays is there */
      NOTE("%s, %d of %d", name[k], i, n);
      each[k]();
    }
    balance(name[k], books, 4 << 10);
  }
}

/* ---- processor time ---- */

static void idle_body(void) {
  ncclComm_t c[6];
  for (int k = 0; k < 6; k++) {
    c[k] = comm_of(k, ranks, me);
    MUST(c[k], sum_checked(c[k], 1000));
  }
  meet();
  NOTE("idle");
  double start = cpu_seconds(), wait = times(2, 10);
  sleep_for(wait);
  CHECK(cpu_seconds() - start < 0.02 * wait, "%.3f s of processor in %.0f idle seconds", cpu_seconds() - start, wait);
  meet();
  for (int k = 0; k < 6; k++) MUST(c[k], ncclCommDestroy(c[k]));
}

static void busy_body(void) { /* eight ranks on one processor */
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "no affinity: %s", strerror(errno));
  ncclComm_t c = comm_new();
  float x = 1, *s = floats(1 << 20), *d = floats(1 << 20);
  fill(s, me, 0, 1 << 20);
  for (int k = 0; k < 20; k++) MUST(c, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclMax, c, NULL));
  NOTE("all-reduce of 4 bytes, 8 ranks on one processor");
  struct span s50 = span_begin("cpu0 ");
  for (int k = 0; k < 50; k++) MUST(c, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclMax, c, NULL));
  double each = span_end(s50) / 50;
  CHECK(each < 0.004, "%.2f ms each", each * 1e3); /* the case says 2 */
  NOTE("all-reduce of 4 MiB, 8 ranks on one processor");
  MUST(c, ncclAllReduce(s, d, 1 << 20, ncclFloat32, ncclSum, c, NULL));
  same("all-reduce", d, -ranks, 0, 1 << 20);
  MUST(c, ncclCommDestroy(c));
  free(s), free(d);
}

static void wait_body(void) { /* rank 0 waits for rank 1 in an all-reduce */
  const double wait = times(2, 5);
  ncclComm_t c = comm_new();
  MUST(c, sum_checked(c, 100));
  meet();
  NOTE("waits %.0f s for the other", wait);
  double start = cpu_seconds();
  if (me == 1) sleep_for(wait);
  MUST(c, sum_checked(c, 100));
  CHECK(cpu_seconds() - start < 0.1 * wait, "%.3f s of processor in %.0f s", cpu_seconds() - start, wait);
  MUST(c, ncclCommDestroy(c));
}

/* ---- the processors given ---- */

static void masks(const char* when, int cpu) { /* every thread may run on this processor alone */
  char path[300];
  cpu_set_t set;
  DIR* d = opendir("/proc/self/task");
  for (struct dirent* e; d != NULL && (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.' || sched_getaffinity(atoi(e->d_name), sizeof set, &set) != 0) continue;
    snprintf(path, sizeof path, "thread %.20s", e->d_name);
    CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set), "%s: %s may run on %d processors", when, path, CPU_COUNT(&set));
  }
  if (d != NULL) closedir(d);
}
static void affinity_body(void) {
  cpu_set_t set;
  int cpu = me % 2;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return; /* a machine with one processor */
  setenv("NCCL_IGNORE_CPU_AFFINITY", me / 2 ? "1" : "0", 1);
  ncclComm_t c = comm_new();
  ops_checked(c, 20000);
  masks("under a mask", cpu);
  CPU_SET(!cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  ops_checked(c, 20000);
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  CHECK(CPU_COUNT(&set) == 2, "the caller's own mask was changed to %d processors", CPU_COUNT(&set));
  MUST(c, ncclCommDestroy(c));
}

/* ---- memory for each communicator ---- */

static long own_memory(void) { /* KiB: what this process alone uses, and its share of what is shared */
  return proc_number("/proc/self/smaps_rollup", "Pss");
}
static void used(ncclComm_t c) {
  MUST(c, sum_checked(c, 1 << 18));
  MUST(c, op_checked(ALL_TO_ALL, c, 1 << 14, 0));
}
static void memory_body(void) {
  enum { N = 64 };
  ncclComm_t c[N];
  c[0] = comm_of(0, ranks, me);
  for (int k = 0; k < 3; k++) used(c[0]);
  meet();
  long before = own_memory();
  meet();
  for (int k = 1; k < N; k++) {
    NOTE("communicator %d", k);
    if (k < N / 2) c[k] = comm_of(k, ranks, me);
    else MUST(c[0], ncclCommSplit(c[0], 0, me, &c[k], NULL));
  }
  meet();
  long unused = (own_memory() - before) / (N - 1);
  CHECK(unused < 100, "%ld KiB for each unused communicator", unused);
  meet();
  for (int k = 1; k < N; k++) used(c[k]);
  meet();
  long busy = (own_memory() - before) / (N - 1);
  CHECK(busy < 1024, "%ld KiB for each used communicator", busy);
  meet();
  for (int k = 0; k < N; k++) MUST(c[k], ncclCommDestroy(c[k]));
}
static int memory(void) {
  int faults = job_run(4, 60, memory_body);
  setenv("NCCL_BUFFSIZE", "65536", 1);
  return faults + job_run(4, 60, memory_body);
}

/* ---- registration ---- */

static void register_body(void) {
  const int n = times(20000, 100000);
  ncclComm_t c = comm_of(0, ranks, me), second = comm_of(1, ranks, me);
  char* p = (char*)malloc(1 << 20);
  void** h = (void**)calloc((size_t)n, sizeof *h);
  void* other = NULL;
  int local = 0;
  NOTE("register the same range %d times", n);
  long before = proc_number("/proc/self/status", "VmRSS");
  for (int k = 0; k < n; k++) MUST(c, ncclCommRegister(c, p + k % 7 * 64, 1 << 19, &h[k]));
  CHECK(proc_number("/proc/self/status", "VmRSS") - before < 512 * (n / 1024 + 8), "%ld KiB for %d handles",
        proc_number("/proc/self/status", "VmRSS") - before, n); /* half a KiB each, and some slack */
  MUST(second, ncclCommRegister(second, p, 1 << 20, &other));
  NOTE("deregister in random order");
  unsigned seed = 4;
  for (int k = n - 1; k >= 0; k--) {
    int at = (int)((unsigned)rand_r(&seed) % (unsigned)(k + 1));
    void* swap = h[at];
    h[at] = h[k];
    MUST(c, ncclCommDeregister(c, swap));
  }
  MUST(second, ncclCommDeregister(second, other));
  NOTE("odd registrations");
  WANT(ncclInvalidArgument, c, ncclCommRegister(c, NULL, 100, &other));
  WANT(ncclInvalidArgument, c, ncclCommRegister(c, p, 0, &other));
  char* gone = (char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, 4096);
  WANT(ncclInvalidArgument, c, ncclCommRegister(c, gone, 4096, &other));
  MUST(c, ncclCommRegister(c, &local, sizeof local, &other)); /* a variable of the stack is memory like any other */
  MUST(c, ncclCommDeregister(c, other));
  WANT(ncclInvalidArgument, c, ncclCommDeregister(c, other));
  NOTE("memory from the library");
  before = proc_number("/proc/self/status", "VmRSS");
  for (int k = 0; k < times(2000, 10000); k++) {
    void* m = NULL;
    MUST(NULL, ncclMemAlloc(&m, 4096 + (size_t)(k % 100) * 1000));
    *(char*)m = 1;
    MUST(NULL, ncclMemFree(m));
  }
  before = proc_number("/proc/self/status", "VmRSS") - before;
  CHECK(before < 4096, "%ld KiB more after ncclMemFree", before);
  NOTE("destroy with 10 handles open");
  for (int k = 0; k < 10; k++) MUST(c, ncclCommRegister(c, p, 1 << 20, &h[k]));
  MUST(c, ncclCommDestroy(c));
  MUST(second, ncclCommDestroy(second));
  free(p), free(h);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "cycles")) return job_run(3, times(60, 600), cycles_body) != 0;
  if (!strcmp(what, "idle")) return job_run(2, 40, idle_body) != 0;
  if (!strcmp(what, "busy")) return job_run(8, 60, busy_body) != 0;
  if (!strcmp(what, "wait")) return job_run(2, 40, wait_body) != 0;
  if (!strcmp(what, "affinity")) return job_run(4, 40, affinity_body) != 0;
  if (!strcmp(what, "memory")) return memory() != 0;
  if (!strcmp(what, "register")) return job_run(2, 60, register_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
