// Numbers, headers, mail and the lock. Stages of an operation:
//
//   begin   number it, post its header on the board            own page, read by others only when something is wrong
//   post    copy the own data into the mail, stamp it           one line to each peer for up to 48 bytes
//   poll    look for the stamps of the others, in rank order
//   finish  combine all mails in rank order into recv, ring those who sleep
//
// Two generations of mail suffice: a rank posts number m+2 into the place of m only when it has seen everybody's m+1, which they
// posted after they were done with m.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "hot.h"
#include "combine.h"

enum { FUTEX_WAKE_SHARED = 1, TYPES = HCCL_TYPES, REDS = HCCL_REDS };

const uint8_t hccl_hot_sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1};

struct hot* hccl_hot_new(uint32_t n) {
  size_t bytes = sizeof(struct hot) + n * sizeof(char*);
  void* p = NULL;
  if (posix_memalign(&p, LINE, bytes)) return NULL;
  memset(p, 0, bytes);
  ((struct hot*)p)->n = n;
  return p;
}

void hccl_hot_free(struct hot* h) { free(h); }

static int reduces(uint32_t func) { return func == FUNC_ALL_REDUCE || func == FUNC_REDUCE_SCATTER || func == FUNC_BARRIER; }

// Whether the rank's data is one part for each rank, of count elements each.
static int divided(uint32_t func) { return func == FUNC_REDUCE_SCATTER || func == FUNC_ALL_TO_ALL; }

int hccl_hot_fits(uint32_t func, uint32_t type, uint32_t red, uint64_t count, uint32_t n) {
  if (func != FUNC_ALL_REDUCE && func != FUNC_BARRIER && (func < FUNC_ALL_GATHER || func > FUNC_ALL_TO_ALL)) return 0;
  if (type >= TYPES || (reduces(func) && red >= REDS) || n > HCCL_MAX_SRC) return 0;
  uint64_t most = MAIL_BYTES / hccl_hot_sizes[type];
  if (divided(func)) most /= n;
  return count != 0 && count <= most;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint64_t hccl_hot_hash(uint64_t what, uint64_t count, uint64_t extra) {
  return mix(mix(mix(what + 0x9e3779b97f4a7c15u) ^ count) + extra);
}

static uint64_t fingerprint(struct hot* h, uint64_t what, uint64_t count, uint64_t extra) {
  if (extra) return hccl_hot_hash(what, count, extra);
  if (what != h->print_what || count != h->print_count || !h->print) {
    h->print = hccl_hot_hash(what, count, 0);
    h->print_what = what;
    h->print_count = count;
  }
  return h->print;
}

// Posts the header of the next operation.
static void begin(struct hot* h, uint64_t what, uint64_t count, uint64_t extra) {
  uint64_t hash = fingerprint(h, what, count, extra), seq = ++h->seq;
  h->chain = h->chain * 0x9e3779b97f4a7c15u + hash; // odd: what differed once differs ever after
  if (!h->board) return;
  struct post* p = (struct post*)h->board + h->posts % BOARD_LEN;
  __atomic_store_n(&p->stamp, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE); // a reader that sees any of the new words sees the stamp gone
  __atomic_store_n(&p->seq, seq, __ATOMIC_RELAXED);
  __atomic_store_n(&p->lane_root, what >> 32 << 32, __ATOMIC_RELAXED);
  __atomic_store_n(&p->what, (uint32_t)what, __ATOMIC_RELAXED);
  __atomic_store_n(&p->count, count, __ATOMIC_RELAXED);
  __atomic_store_n(&p->extra, extra, __ATOMIC_RELAXED);
  __atomic_store_n(&p->hash, hash, __ATOMIC_RELAXED);
  __atomic_store_n(&p->stamp, ++h->posts, __ATOMIC_RELEASE);
}

uint64_t hccl_hot_begin(struct hot* h, uint64_t what, uint64_t count, uint64_t extra) {
  begin(h, what, count, extra);
  return h->seq;
}

static struct mail* head_of(const struct hot* h, uint32_t rank) {
  return (struct mail*)h->heads + rank * MAIL_GENS + h->mails % MAIL_GENS;
}

static char* data_of(const struct hot* h, uint32_t rank) {
  if (h->pending.bytes <= MAIL_INLINE) return head_of(h, rank)->data;
  return h->bodies + (rank * MAIL_GENS + h->mails % MAIL_GENS) * (size_t)MAIL_BYTES;
}

static int copy_scaled(struct hot* h, const struct op* op, char* to, uint64_t bytes) {
  struct hccl_cmd c = {.op = HCCL_COPY, .red = op->red, .src_type = op->type, .acc = op->type, .dst_type = op->type, .nsrc = 1,
                       .ndst = 1, .scaled = 0, .n = bytes / hccl_hot_sizes[op->type], .scale = op->scale};
  c.dst[0] = (uintptr_t)to;
  c.src[0] = (uintptr_t)op->send;
  return h->kernel(&c, 1);
}

// Begins an operation and posts the own mail; one that has no room in it begins the two-shot path.
static int post(struct hot* h, const struct op* op) {
  struct pending* p = &h->pending;
  uint64_t what = op->func | op->type << 8 | (reduces(op->func) ? op->red << 16 : 0);
  begin(h, what, op->count, 0);
  p->op = *op;
  p->seq = h->seq;
  p->print = h->chain;
  p->bytes = op->count * hccl_hot_sizes[op->type] * (divided(op->func) ? h->n : 1);
  p->next = 0;
  p->active = 1;
  p->failed = 0;
  p->two = p->bytes > MAIL_BYTES;
  if (p->two) {
    hccl_two_begin(h);
    return 0;
  }
  h->mails++;
  struct mail* m = head_of(h, h->rank);
  char* to = data_of(h, h->rank);
  if (reduces(op->func) && op->red == HCCL_PREMULSUM) p->failed = copy_scaled(h, op, to, p->bytes) != 0;
  else copy_small(to, op->send, p->bytes);
  if (p->failed) return POLL_FAILED; // and nothing is published
  m->print = p->print;
  __atomic_store_n(&m->stamp, h->mails, __ATOMIC_RELEASE); // publishes data and print
  return 0;
}

int hccl_hot_post(struct hot* h, uint32_t func, uint32_t type, uint32_t red, uint64_t count, uint64_t scale, uintptr_t send,
                  uintptr_t recv) {
  struct op op = {func, type, red, count, scale, (const void*)send, (void*)recv};
  h->pending.item = NULL;
  return post(h, &op);
}

// Wakes the ranks that sleep. They wait for mail that is there by now, ours the last: whoever completes an operation rings, and
// of ranks that do not, each has looked after its own mail was out. The fence orders our stamp before the look at the bells.
void hccl_hot_ring(struct hot* h) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  for (uint32_t r = 0; r < h->n; r++) {
    uint64_t v = __atomic_load_n((uint64_t*)(h->blocks + r * (size_t)BLOCK_SIZE + BLOCK_BELLS), __ATOMIC_RELAXED);
    for (; v; v >>= 32) {
      uint32_t bell = (uint32_t)v - 1;
      if (bell >= MAX_BELLS) continue; // a peer's word is checked; an empty half is -1
      uint32_t* word = (uint32_t*)(h->bells[r] + bell * (size_t)LINE);
      __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
      syscall(SYS_futex, word, FUTEX_WAKE_SHARED, 1 << 30, NULL, NULL, 0);
    }
  }
}

static int reduce(struct hot* h, const struct op* op) {
  const struct pending* p = &h->pending;
  uint64_t skip = op->func == FUNC_REDUCE_SCATTER ? h->rank * op->count * hccl_hot_sizes[op->type] : 0;
  if (p->bytes <= MAIL_INLINE && op->func == FUNC_ALL_REDUCE &&
      sum_small(op->recv, data_of(h, 0), MAIL_GENS * LINE, h->n, op->type, op->red, op->count))
    return 0;
  struct hccl_cmd c;
  c.op = HCCL_REDUCE;
  c.red = op->red == HCCL_PREMULSUM ? HCCL_SUM : op->red; // scaled before it was posted
  c.src_type = c.dst_type = op->type;
  c.acc = accumulator(op->type, op->red);
  c.nsrc = h->n;
  c.ndst = 1;
  c.scaled = -1;
  c.stream = 0;
  c.n = op->count;
  c.scale = 0;
  c.div = h->n;
  c.init = 0;
  c.dst[0] = (uintptr_t)op->recv;
  c.dst[1] = 0;
  for (uint32_t r = 0; r < h->n; r++) c.src[r] = (uintptr_t)data_of(h, r) + skip;
  return h->kernel(&c, 1);
}

// Everybody's mail is there: makes the result. Reads mail only, so recv may be send.
static int finish(struct hot* h) {
  const struct op* op = &h->pending.op;
  int bad = 0;
  if (reduces(op->func)) {
    bad = reduce(h, op);
  } else {
    uint64_t part = op->count * hccl_hot_sizes[op->type], skip = op->func == FUNC_ALL_TO_ALL ? h->rank * part : 0;
    for (uint32_t r = 0; r < h->n; r++) copy_small((char*)op->recv + r * part, data_of(h, r) + skip, part);
  }
  hccl_hot_ring(h);
  h->pending.active = 0;
  __atomic_store_n(&h->pending.item, NULL, __ATOMIC_RELAXED);
  return bad ? POLL_FAILED : POLL_DONE;
}

static inline int poll_mail(struct hot* h) {
  struct pending* p = &h->pending;
  if (p->failed) return POLL_FAILED;
  if (p->two) return hccl_two_poll(h);
  for (; p->next < h->n; p->next++) {
    struct mail* m = head_of(h, p->next);
    if (__atomic_load_n(&m->stamp, __ATOMIC_ACQUIRE) != h->mails) return POLL_NOT_YET;
    if (m->print != p->print) return POLL_MISMATCH;
  }
  return finish(h);
}

int hccl_hot_poll(struct hot* h) { return poll_mail(h); }

int hccl_hot_try(struct hot* h) {
  uint32_t free = 0;
  return __atomic_compare_exchange_n(&h->lock, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void hccl_hot_unlock(struct hot* h) {
  if (__atomic_exchange_n(&h->lock, 0, __ATOMIC_RELEASE) == 2)
    syscall(SYS_futex, &h->lock, FUTEX_WAKE_SHARED, 1, NULL, NULL, 0);
}
