/* Binary compatibility: structs of older headers, functions that are looked for, non-blocking communicators, another build. */
#include "case_ops.h"

#include <dlfcn.h>

/* ---- config structs of older headers, each ending where memory ends ---- */

static void* at_page_end(const void* p, size_t size, char** map) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *map = (char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(*map + page, page, PROT_NONE);
  return memcpy(*map + page - size, p, size);
}
static ncclConfig_t config_of(size_t size, unsigned magic, unsigned version) {
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  c.size = size, c.magic = magic, c.version = version;
  return c;
}

static void config_tried(ncclComm_t parent, int slot, ncclConfig_t config, size_t real, int good) {
  char* map;
  ncclConfig_t* p = (ncclConfig_t*)at_page_end(&config, real, &map);
  ncclComm_t c = NULL;
  NOTE("config of %zu bytes in %zu, magic %#x, version %u", config.size, real, config.magic, config.version);
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[slot]));
  meet();
  ncclResult_t got = ncclCommInitRankConfig(&c, ranks, job->id[slot], me, p);
  CHECK(got == (good ? ncclSuccess : ncclInvalidArgument), "init gave %d: %s", got, ncclGetLastError(NULL));
  if (!good) CHECK(ncclGetLastError(NULL)[0] != 0, "no text");
  if (got == ncclSuccess) {
    MUST(c, sum_checked(c, 10));
    MUST(c, ncclCommDestroy(c));
  }
  c = NULL;
  got = ncclCommSplit(parent, 0, me, &c, p);
  CHECK(got == (good ? ncclSuccess : ncclInvalidArgument), "split gave %d: %s", got, ncclGetLastError(parent));
  if (got == ncclSuccess) MUST(c, ncclCommDestroy(c));
  meet();
  munmap(map, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

static void configs_body(void) {
  static const struct { unsigned version; size_t size; } old[] = {
      {21403, 24}, {21801, 48}, {22105, 48}, {22703, 72}, {23203, sizeof(ncclConfig_t)}};
  const ncclConfig_t now_config = NCCL_CONFIG_INITIALIZER;
  char long_config[4096];
  ncclComm_t parent = comm_of(RANKS - 1, ranks, me);
  for (int k = 0; k < 5; k++) config_tried(parent, k, config_of(old[k].size, now_config.magic, old[k].version), old[k].size, 1);
  config_tried(parent, 5, config_of(sizeof now_config, now_config.magic, 99999), sizeof now_config, 1); /* of the future */
  config_tried(parent, 6, config_of(0, now_config.magic, 23203), sizeof now_config, 0);
  config_tried(parent, 7, config_of(7, now_config.magic, 23203), sizeof now_config, 0);
  config_tried(parent, 8, config_of(sizeof now_config, 0x1234, 23203), sizeof now_config, 0);
  ncclComm_t c = NULL; /* 4096 bytes, the unknown part undefined: a later header's */
  NOTE("a config of 4096 bytes");
  memset(long_config, 0x80, sizeof long_config);
  ncclConfig_t head = config_of(sizeof long_config, now_config.magic, 99999);
  memcpy(long_config, &head, sizeof head);
  for (size_t k = sizeof head; k < sizeof long_config; k += 4) memcpy(long_config + k, &(int){NCCL_CONFIG_UNDEF_INT}, 4);
  ncclResult_t got = ncclCommSplit(parent, 0, me, &c, (ncclConfig_t*)(void*)long_config);
  CHECK(got == ncclSuccess || (got == ncclInvalidArgument && ncclGetLastError(parent)[0] != 0), "gave %d", got);
  if (c != NULL) MUST(c, ncclCommDestroy(c));
  MUST(parent, sum_checked(parent, 10));
  MUST(parent, ncclCommDestroy(parent));
}

/* ---- every name of a list can be found, however the library is opened ---- */

static int names(const char* library, const char* list) {
  static const int modes[] = {RTLD_NOW | RTLD_LOCAL, RTLD_NOW | RTLD_GLOBAL, RTLD_LAZY};
  char line[200];
  int faults = 0, seen = 0;
  for (int k = 0; k < 3; k++) {
    void* lib = dlopen(library, modes[k]);
    FILE* f = fopen(list, "r");
    if (lib == NULL || f == NULL) return printf("cannot open %s or %s: %s\n", library, list, dlerror());
    while (fgets(line, sizeof line, f) != NULL) {
      line[strcspn(line, " \t\r\n")] = 0;
      if (strncmp(line, "nccl", 4) != 0 && strncmp(line, "pnccl", 5) != 0) continue;
      seen++;
      if (dlsym(lib, line) == NULL) faults++, printf("mode %#x: no %s\n", modes[k], line);
    }
    fclose(f);
  }
  if (seen < 300) faults++, printf("only %d names in %s\n", seen, list);
  return faults;
}

/* What is not there yet says so, by name. */
static void absent_body(void) {
  ncclComm_t c = comm_new(), child = NULL;
  int out[1] = {1};
  for (int k = 0; k < 3; k++) {
    ncclResult_t got = ncclCommShrink(c, out, 1, &child, NULL, 0);
    CHECK(got == ncclInvalidUsage, "shrink gave %d", got);
    SAYS(c, "ncclCommShrink");
  }
  MUST(c, sum_checked(c, 10));
  MUST(c, ncclCommDestroy(c));
}

/* ---- non-blocking ---- */

#define STARTED(call) \
  do { \
    int got_ = (int)(call); \
    CHECK(got_ == ncclSuccess || got_ == ncclInProgress, "%s gave %d: %s", #call, got_, ncclGetLastError(c)); \
  } while (0)

static void settle(ncclComm_t c) {
  ncclResult_t state = state_after(c, ncclInProgress, 20);
  CHECK(state == ncclSuccess, "state %d: %s", state, ncclGetLastError(c));
}

static ncclComm_t begin(int slot) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t c = NULL;
  config.blocking = 0;
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[slot]));
  meet();
  STARTED(ncclCommInitRankConfig(&c, ranks, job->id[slot], me, &config));
  CHECK(c != NULL, "no handle at return");
  return c;
}

static void nonblocking(int slot, int poll) {
  ncclComm_t c = begin(slot), child = NULL;
  float p[8] = {0, 1, 2, 3, 4, 5, 6, 7}, s[100], d[100];
  void* handle = NULL;
  int n = -1, r = -1;
  NOTE("non-blocking, %s", poll ? "polled between" : "one call after the other");
  if (poll) settle(c);
  if (me == 1) memset(p, 0, sizeof p);
  STARTED(ncclGroupStart());
  STARTED(me == 0 ? ncclSend(p, 8, ncclFloat32, 1, c, NULL) : ncclRecv(p, 8, ncclFloat32, 0, c, NULL));
  STARTED(ncclGroupEnd());
  if (poll) settle(c);
  STARTED(ncclCommRegister(c, s, sizeof s, &handle));
  STARTED(ncclCommCount(c, &n));
  STARTED(ncclCommUserRank(c, &r));
  if (poll) settle(c);
  STARTED(ncclCommSplit(c, 0, me, &child, NULL));
  CHECK(child != NULL, "no child at return");
  if (poll) settle(c);
  fill(s, me, 0, 100), blank(d, 100);
  STARTED(ncclAllReduce(s, d, 100, ncclFloat32, ncclSum, c, NULL));
  settle(c);
  settle(child);
  for (int k = 0; k < 8; k++) CHECK(p[k] == (float)k, "element %d of the message is %g", k, (double)p[k]);
  same("all-reduce", d, -ranks, 0, 100);
  MUST(c, ncclCommCount(c, &n));
  MUST(c, ncclCommUserRank(c, &r));
  CHECK(n == ranks && r == me, "rank %d of %d", r, n);
  if (handle != NULL) STARTED(ncclCommDeregister(c, handle));
  STARTED(ncclCommFinalize(child));
  settle(child);
  STARTED(ncclCommDestroy(child));
  STARTED(ncclCommFinalize(c));
  settle(c);
  STARTED(ncclCommDestroy(c));
}

static void nonblocking_body(void) {
  nonblocking(0, 1), nonblocking(1, 0);
  meet();
  if (me == 1) { /* never comes to the third */
    MUST(NULL, ncclGetUniqueId(&job->id[2]));
    meet();
    return;
  }
  meet();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t c = NULL;
  config.blocking = 0;
  NOTE("abort of an init that rank 1 does not join");
  STARTED(ncclCommInitRankConfig(&c, ranks, job->id[2], me, &config));
  CHECK(state_after(c, ncclInProgress, 1) == ncclInProgress, "init without rank 1 came to an end");
  double start = now();
  STARTED(ncclCommAbort(c));
  WITHIN(2, start);
}

/* ---- one rank with another build of the library ---- */

static const char *ours, *theirs;

static void build_body(void) {
  void* lib = dlopen(me == 2 ? theirs : ours, RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    FAULT("%s", dlerror());
    return;
  }
  ncclResult_t (*init)(ncclComm_t*, int, ncclUniqueId, int) = NULL;
  ncclResult_t (*make)(ncclUniqueId*) = NULL;
  const char* (*said)(ncclComm_t) = NULL;
  *(void**)&init = dlsym(lib, "ncclCommInitRank");
  *(void**)&make = dlsym(lib, "ncclGetUniqueId");
  *(void**)&said = dlsym(lib, "ncclGetLastError");
  ncclComm_t c = NULL;
  setenv("HCCL_INIT_TIMEOUT", "20", 1);
  if (me == 0) make(&job->id[0]);
  meet();
  NOTE("init with another build at rank 2");
  double start = now();
  ncclResult_t got = init(&c, ranks, job->id[0], me);
  CHECK(got != ncclSuccess && got != ncclInProgress, "init gave %d", got);
  WITHIN(6, start);
  CHECK(strcasestr(said(NULL), "version") != NULL, "\"%s\" does not speak of versions", said(NULL));
  CHECK(me == 2 || strstr(said(NULL), "2") != NULL, "\"%s\" does not name rank 2", said(NULL));
  meet(); /* the maker of the id stays until all have been told */
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "configs")) return job_run(2, 40, configs_body) != 0;
  if (!strcmp(what, "names") && argc > 3) return names(argv[2], argv[3]) != 0;
  if (!strcmp(what, "absent")) return job_run(2, 40, absent_body) != 0;
  if (!strcmp(what, "nonblocking")) return job_run(2, 60, nonblocking_body) != 0;
  if (!strcmp(what, "build") && argc > 3) {
    ours = argv[2], theirs = argv[3];
    return job_run(3, 40, build_body) != 0;
  }
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
