// Exercises the C of shm/fast without Go: ranks are forked processes over anonymous shared memory.
//
//   driver check RANKS OPS SEED    random operations, checked; some ranks dawdle, so that others sleep on their bells
//   driver bench RANKS BYTES OPS   latency of an all-reduce of float32: median and 99th percentile in ns, ranks pinned
//
// The Go tests build it with sanitizers for check, and optimised for bench.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../hot.h"

enum { PAGE = 4096, ROOM = 2 * ROOM_SLOTS * SLOT, MOST = TWO_MOST };

static const unsigned sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

struct world {
  uint32_t n;
  char *blocks, *heads, *bodies, *boards, *bells, *shots, *rooms;
};

static struct world make_world(uint32_t n) {
  size_t blocks = PAGE * 4, heads = n * MAIL_GENS * LINE, bodies = n * (size_t)MAIL_GENS * MAIL_BYTES, boards = n * (size_t)PAGE;
  size_t rest = n * (size_t)PAGE, shots = n * sizeof(struct shots), rooms = n * (size_t)ROOM;
  char* p = mmap(NULL, rooms + blocks + heads + bodies + boards + rest + shots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) exit(2);
  char *q = p + rooms, *b = q + blocks + heads + bodies;
  struct world w = {n, q, q + blocks, q + blocks + heads, b, b + boards, b + boards + rest, p};
  return w;
}

static struct hot* join(const struct world* w, uint32_t rank) {
  struct hot* h = hccl_hot_new(w->n);
  h->rank = rank;
  h->spins = w->n > (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) ? 20 : 3000;
  h->yields = 300;
  h->why = (const uint32_t*)(w->blocks + rank * BLOCK_SIZE);
  h->blocks = w->blocks;
  h->heads = w->heads;
  h->bodies = w->bodies;
  h->board = w->boards + rank * (size_t)PAGE;
  h->kernel = hccl_host_run;
  h->open = 1;
  for (uint32_t r = 0; r < w->n; r++) h->bells[r] = w->bells + r * (size_t)PAGE;
  if (w->n != 2) return h;
  h->two.most = TWO_MOST;
  h->two.room_off = rank * (uint64_t)ROOM;
  h->two.room = w->rooms + h->two.room_off;
  h->two.their_view = w->rooms;
  h->two.their_size = 2 * (uint64_t)ROOM;
  h->two.shots = w->shots;
  h->two.stream_from = 1 << 20;
  return h;
}

// What the core does with a pending operation: arm, look, sleep. Bell 0 of the own process.
static int resume(struct hot* h) {
  uint32_t* word = (uint32_t*)h->bells[h->rank];
  uint64_t* armed = (uint64_t*)(h->blocks + h->rank * BLOCK_SIZE + BLOCK_BELLS);
  for (;;) {
    uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    __atomic_exchange_n(armed, 1, __ATOMIC_SEQ_CST);
    int r = hccl_hot_poll(h);
    if (r == POLL_MOVED) continue;
    if (!r) {
      struct timespec limit = {20, 0};
      long rc = syscall(SYS_futex, word, 0, seen, &limit, NULL, 0);
      if (rc < 0 && __atomic_load_n(word, __ATOMIC_SEQ_CST) == seen) {
        fprintf(stderr, "rank %u: a ring was lost\n", h->rank);
        exit(1);
      }
    }
    __atomic_exchange_n(armed, 0, __ATOMIC_SEQ_CST);
    if (r) {
      hccl_hot_unlock(h);
      return r == POLL_DONE ? 0 : r;
    }
  }
}

// As the core does, which goes on where C leaves off; but it makes what C refuses by a plan, and this asks again.
static int call(struct hot* h, const struct hccl_item* it) {
  for (;;) {
    int r = hccl_fast(h, it);
    if (r != -1) return r;
    if (h->pending.item == it) return resume(h);
    sched_yield();
  }
}

static int over;

// Takes the room away and gives it back, as the core does between operations when another communicator needs it.
static void* steal(void* hot) {
  struct hot* h = hot;
  char* room = h->two.room;
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
    if (hccl_hot_try(h)) {
      h->two.room = h->two.room ? NULL : room;
      hccl_hot_unlock(h);
    }
    sched_yield();
  }
  return NULL;
}

static uint64_t next(uint64_t* s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  *s ^= *s << 17;
  return *s;
}

// Small whole numbers are exact in these types, so the order of a sum does not matter here: its order has tests in Go.
static const int types[] = {HCCL_I8, HCCL_I32, HCCL_U64, HCCL_F16, HCCL_F32, HCCL_F64};

static void put(char* p, int type, int v) {
  switch (type) {
    case HCCL_I8: *p = (char)v; return;
    case HCCL_I32: memcpy(p, &v, 4); return;
    case HCCL_U64: { uint64_t x = v; memcpy(p, &x, 8); return; }
    case HCCL_F16: { _Float16 x = v; memcpy(p, &x, 2); return; }
    case HCCL_F32: { float x = v; memcpy(p, &x, 4); return; }
    default: { double x = v; memcpy(p, &x, 8); }
  }
}

static int get(const char* p, int type) {
  switch (type) {
    case HCCL_I8: return *p;
    case HCCL_I32: { int x; memcpy(&x, p, 4); return x; }
    case HCCL_U64: { uint64_t x; memcpy(&x, p, 8); return (int)x; }
    case HCCL_F16: { _Float16 x; memcpy(&x, p, 2); return (int)x; }
    case HCCL_F32: { float x; memcpy(&x, p, 4); return (int)x; }
    default: { double x; memcpy(&x, p, 8); return (int)x; }
  }
}

static int value(uint64_t op, uint32_t rank, uint64_t i) { return (int)((op * 7 + rank * 3 + i) % 5); }

static int combined(uint32_t red, uint64_t op, uint32_t n, uint64_t i) {
  int acc = value(op, 0, i), sum = acc;
  for (uint32_t r = 1; r < n; r++) {
    int v = value(op, r, i);
    sum += v;
    acc = red == HCCL_MAX ? (v > acc ? v : acc) : red == HCCL_MIN ? (v < acc ? v : acc) : sum;
  }
  return red == HCCL_AVG ? sum / (int)n : red == HCCL_PREMULSUM ? 2 * sum : acc;
}

static int expected(const struct hccl_item* it, uint64_t op, uint32_t n, uint32_t rank, uint64_t i) {
  switch (it->func) {
    case FUNC_ALL_REDUCE: return combined(it->red, op, n, i);
    case FUNC_REDUCE_SCATTER: return combined(it->red, op, n, rank * it->count + i);
    case FUNC_ALL_GATHER: return value(op, i / it->count, i % it->count);
    default: return value(op, i / it->count, rank * it->count + i % it->count);
  }
}

static int check(struct hot* h, uint64_t ops, uint64_t seed) {
  static const int funcs[] = {FUNC_ALL_REDUCE, FUNC_ALL_GATHER, FUNC_REDUCE_SCATTER, FUNC_ALL_TO_ALL};
  static const int reds[] = {HCCL_SUM, HCCL_MAX, HCCL_MIN, HCCL_AVG, HCCL_PREMULSUM};
  char *send = malloc(MOST + 8), *recv = malloc(MOST + 8);
  uint64_t own = seed + 1000 * (h->rank + 1);
  pthread_t thief;
  if (h->n == 2) pthread_create(&thief, NULL, steal, h);
  for (uint64_t op = 0; op < ops; op++) {
    struct hccl_item it = {.kind = HCCL_ITEM_CALL};
    it.func = funcs[next(&seed) % 4];
    it.type = types[next(&seed) % 6];
    it.red = reds[next(&seed) % 5];
    if (it.red == HCCL_AVG && it.type >= HCCL_F16) it.red = HCCL_SUM; // its quotients are not whole
    uint32_t parts = it.func == FUNC_REDUCE_SCATTER || it.func == FUNC_ALL_TO_ALL ? h->n : 1;
    uint64_t most = MAIL_BYTES / sizes[it.type] / parts;
    it.count = next(&seed) % 3 ? 1 + next(&seed) % (most < 14 ? most : 14) : 1 + next(&seed) % most;
    if (h->n == 2 && next(&seed) % 32 == 0) {
      it.func = FUNC_ALL_REDUCE;
      parts = 1;
      most = (next(&seed) % 4 ? 128 << 10 : TWO_MOST - MAIL_BYTES) / sizes[it.type];
      it.count = MAIL_BYTES / sizes[it.type] + 1 + next(&seed) % most;
    }
    put((char*)&it.scale, it.type, 2);
    char *from = send + next(&own) % 8, *to = recv + next(&own) % 8;
    uint64_t out = it.func == FUNC_ALL_REDUCE || it.func == FUNC_REDUCE_SCATTER ? it.count : it.count * h->n;
    if (it.func == FUNC_ALL_REDUCE && next(&own) % 2) to = from;
    for (uint64_t i = 0; i < it.count * parts; i++) put(from + i * sizes[it.type], it.type, value(op, h->rank, i));
    it.send = from;
    it.recv = to;
    if (next(&own) % 64 == 0) usleep(next(&own) % 2000);
    int rc = call(h, &it);
    for (uint64_t i = 0; i < out; i++) {
      int got = get(to + i * sizes[it.type], it.type), want = (int)(signed char)expected(&it, op, h->n, h->rank, i);
      if (rc || got != want) {
        fprintf(stderr, "rank %u op %lu func %u type %d red %d count %lu: rc %d, element %lu is %d, not %d\n", h->rank, op, it.func,
                it.type, it.red, it.count, rc, i, got, want);
        return 1;
      }
    }
  }
  free(send);
  free(recv);
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  if (h->n == 2) pthread_join(thief, NULL);
  return 0;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

static int bench(struct hot* h, uint64_t bytes, uint64_t ops) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(h->rank % sysconf(_SC_NPROCESSORS_ONLN), &set);
  sched_setaffinity(0, sizeof set, &set);
  float *send = aligned_alloc(64, MOST), *recv = aligned_alloc(64, MOST);
  uint32_t* took = calloc(ops, sizeof *took);
  for (uint64_t i = 0; i < bytes / 4; i++) send[i] = 1;
  struct hccl_item it = {.kind = HCCL_ITEM_CALL, .func = FUNC_ALL_REDUCE, .type = HCCL_F32, .red = HCCL_SUM, .count = bytes / 4};
  it.send = send;
  it.recv = recv;
  for (int i = 0; i < 1000; i++) call(h, &it);
  uint64_t start = now();
  for (uint64_t i = 0; i < ops; i++) call(h, &it);
  uint64_t all = now() - start;
  for (uint64_t i = 0; i < ops; i++) {
    uint64_t from = now();
    call(h, &it);
    took[i] = now() - from;
  }
  qsort(took, ops, sizeof *took, by_value);
  if (h->rank == 0)
    printf("%u ranks %5lu B: back to back %lu ns, timed one by one p50 %u p99 %u ns\n", h->n, bytes, all / ops, took[ops / 2],
           took[ops / 100 * 99]);
  return recv[0] != h->n;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  uint32_t n = atoi(argv[2]);
  uint64_t a = strtoull(argv[3], NULL, 0), b = strtoull(argv[4], NULL, 0);
  struct world w = make_world(n);
  for (uint32_t r = 0; r < n; r++) {
    if (fork()) continue;
    struct hot* h = join(&w, r);
    int rc = strcmp(argv[1], "check") ? bench(h, a, b) : check(h, a, b);
    hccl_hot_free(h);
    exit(rc);
  }
  int bad = 0, status;
  while (wait(&status) > 0) bad |= status;
  return bad != 0;
}
