/* Structs of older and newer headers: what is read, what is refused, and that nothing beyond their size is touched. */
#include "test.h"

/* The headers that changed the struct: their version, its size and its last member's offset. */
static const struct { unsigned version; size_t size; int padded; } configs[] = {
  {21403, 24, 1}, {21701, 40, 0}, {21801, 48, 1}, {22105, 48, 1}, {22602, 48, 0}, {22703, 72, 0}, {22803, 80, 0},
  {22902, 88, 0}, {23007, 96, 0}, {23102, 112, 0}, {23203, 120, 1}};
static const struct { unsigned version; size_t size; } coll_configs[] = {{23102, 64}, {23203, 72}};

static ncclUniqueId id;
static float a[4], b[4];

static ncclResult_t init(const void* config, struct hccl_item* item) {
  ncclComm_t comm = NULL;
  ncclResult_t e = ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t*)config);
  if (item != NULL && e == ncclSuccess) *item = fake()->items[0].item;
  if (comm != NULL) ncclCommDestroy(comm);
  return e;
}

static void test_older(void) {
  for (size_t k = 0; k < sizeof configs / sizeof *configs; k++) {
    struct hccl_item item;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.size = configs[k].size;
    config.version = configs[k].version;
    config.minCTAs = 3; /* in the oldest not there */
    config.maxCTAs = 5;
    char* end = (char*)at_page_end(&config, config.size);
    if (configs[k].padded) memset(end + config.size - 4, 0x5a, 4); /* padding may hold anything */
    WANT(ncclSuccess, init(end, &item));
    int there = configs[k].size >= 40;
    CHECK(item.min_channels == (there ? 3 : 0) && item.max_channels == (there ? 5 : 0) && item.blocking == 1,
          "version %u: %d to %d", config.version, item.min_channels, item.max_channels);
    page_free(end);
  }
}

union longer { /* as a later header may have it */
  ncclConfig_t known;
  int word[sizeof(ncclConfig_t) / 4 + 8];
};
static void later(union longer* c, int value) {
  ncclConfig_t preset = NCCL_CONFIG_INITIALIZER;
  int words = (int)(sizeof *c / 4);
  for (int k = 0; k < words; k++) c->word[k] = NCCL_CONFIG_UNDEF_INT;
  c->known = preset;
  c->known.size = sizeof *c;
  c->known.version = 23300;
  c->word[words - 4] = c->word[words - 3] = 0; /* a pointer */
  c->word[words - 2] = value;
}

static void test_newer(void) {
  union longer c;
  later(&c, NCCL_CONFIG_UNDEF_INT);
  void* end = at_page_end(&c, sizeof c);
  MUST(init(end, NULL));
  page_free(end);
  later(&c, 5);
  REFUSED("offset 144", NULL, init(&c, NULL));
  later(&c, NCCL_CONFIG_UNDEF_INT);
  c.word[sizeof c / 4 - 1] = c.word[29] = 0x5a5a5a5a; /* where a later header may have padding */
  MUST(init(&c, NULL));
}

static void test_refused(void) {
  static const size_t sizes[] = {0, 7, 16, 23, 4096, (size_t)1 << 40};
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  const ncclConfig_t preset = c;
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    void* end = at_page_end(&sizes[k], sizeof sizes[k]); /* nothing but the size may be read */
    REFUSED("size", NULL, init(end, NULL));
    page_free(end);
  }
  c.magic = 0xdeadbeef;
  REFUSED("magic", NULL, init(&c, NULL));
  c = preset, c.version = 7;
  REFUSED("version 7", NULL, init(&c, NULL));
  c = preset, c.blocking = 7;
  REFUSED("blocking", NULL, init(&c, NULL));
  c = preset, c.minCTAs = 0;
  REFUSED("minCTAs", NULL, init(&c, NULL));
  c = preset, c.minCTAs = 8, c.maxCTAs = 2;
  REFUSED("minCTAs 8", NULL, init(&c, NULL));
  c = preset, c.splitShare = 2;
  REFUSED("splitShare", NULL, init(&c, NULL));
  c = preset, c.hostCftMode = 9;
  REFUSED("hostCftMode", NULL, init(&c, NULL));
}

static void test_environment(void) {
  struct hccl_item item;
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  setenv("NCCL_COMM_BLOCKING", "0", 1);
  MUST(init(&c, &item));
  CHECK(item.blocking == 0, "NCCL_COMM_BLOCKING=0 has no effect");
  setenv("NCCL_COMM_BLOCKING", "1", 1);
  c.blocking = 0;
  MUST(init(&c, &item));
  CHECK(item.blocking == 1, "NCCL_COMM_BLOCKING=1 is weaker than the program");
  unsetenv("NCCL_COMM_BLOCKING");
  MUST(init(&c, &item));
  CHECK(item.blocking == 0, "blocking=0 has no effect");
}

static void test_inherited(void) {
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  ncclComm_t parent, child;
  c.minCTAs = 2, c.maxCTAs = 6, c.commName = "parent";
  MUST(ncclCommInitRankConfig(&parent, 1, id, 0, &c));
  MUST(ncclCommSplit(parent, 0, 0, &child, NULL));
  struct fake_item* f = &fake()->items[0];
  CHECK(f->item.min_channels == 2 && f->item.max_channels == 6 && strcmp(f->name, "parent") == 0,
        "a split without config inherits");
  MUST(ncclCommDestroy(child));
  c.minCTAs = c.maxCTAs = NCCL_CONFIG_UNDEF_INT, c.commName = NULL;
  MUST(ncclCommSplit(parent, 0, 0, &child, &c));
  CHECK(f->item.min_channels == 0 && f->name[0] == 0, "a split with a config of its own does not");
  MUST(ncclCommDestroy(child));
  MUST(ncclCommDestroy(parent));
}

static void test_calls(void) {
  ncclComm_t comm = make(1, 0);
  ncclConfigExt_t ext = {NULL, {77, 1}, {5}};
  ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;
  const ncclCollConfig_t preset = c;
#define SUM(config) ncclAllReduceConfig(a, b, 1, ncclFloat, ncclSum, comm, NULL, config)
  for (size_t k = 0; k < sizeof coll_configs / sizeof *coll_configs; k++) {
    c.size = coll_configs[k].size, c.version = coll_configs[k].version;
    c.algSelection = "ring", c.forceAlgSelection = 0, c.ext = &ext, c.userProfilerTag = 1234567890123;
    void* end = at_page_end(&c, c.size);
    MUST(SUM((ncclCollConfig_t*)end));
    CHECK(strcmp(fake()->items[0].algo, "ring") == 0 && fake()->items[0].item.algo_forced == 0, "version %u", c.version);
    page_free(end);
  }
  MUST(SUM(NULL));
  CHECK(fake()->items[0].algo[0] == 0 && fake()->items[0].item.min_channels == 0, "a call without config");
  c = preset, c.size = 7;
  REFUSED("size", comm, SUM(&c));
  c = preset, c.magic = 0;
  REFUSED("magic", comm, SUM(&c));
  c = preset, c.minCTAs = 8, c.maxCTAs = 2;
  REFUSED("minCTAs 8", comm, SUM(&c));
  c = preset, c.forceAlgSelection = 3;
  REFUSED("forceAlgSelection", comm, SUM(&c));
  c = preset, c.launchCompletionEvent = (cudaEvent_t)(size_t)64;
  WANT(ncclInvalidUsage, SUM(&c));
  MUST(ncclCommDestroy(comm));
}

int main(void) {
  unsetenv("NCCL_COMM_BLOCKING");
  MUST(ncclGetUniqueId(&id));
  test_older();
  test_newer();
  test_refused();
  test_environment();
  test_inherited();
  test_calls();
  return test_end();
}
