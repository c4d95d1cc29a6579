// All-reduce of two ranks in two shots, for vectors that are too long for mail. Each rank sums one half, its chunk, slice by slice:
//
//   round t    send slice t of the other's chunk     copy into the own room, count it as sent
//              make slice t-2 of the own chunk       sum own and other's in rank order, into recv and the own room, count it as made
//              keep slice t-3 of the other's chunk   copy the other's result into recv
//
// A slot needs no acknowledgement. Who makes slice i has seen the other's slice i sent, in a round in which the other had kept slice
// i-4; who sends slice i has kept slice i-4, which the other made from what lay in the same slot. The same holds from one
// operation to the next, as their slices are counted on.
#include "hot.h"
#include "combine.h"

enum { BURST = 24 }; // stages in one poll, so that the caller looks at its own affairs in between
enum { AHEAD = 2, SENT = 0, MADE = 1 }; // halves of a room, and places in phase

int hccl_two_fits(const struct hot* h, uint32_t func, uint32_t type, uint32_t red, uint64_t count) {
  return func == FUNC_ALL_REDUCE && type < HCCL_TYPES && red < HCCL_REDS && count && count <= h->two.most / hccl_hot_sizes[type];
}

static struct shots* shots_of(const struct hot* h, uint32_t rank) { return (struct shots*)h->two.shots + rank; }

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// Cuts the vector into two chunks and these into slices, at least two, of whole lines.
static void cut(struct two* t, uint64_t count, uint64_t size) {
  uint64_t line = LINE / size, half = up((count + 1) / 2, line);
  t->half = half < count ? half : count;
  uint64_t pieces = (t->half * size + SLICE_MOST - 1) / SLICE_MOST;
  if (pieces < 2) pieces = 2;
  t->slice = up((t->half + pieces - 1) / pieces, line);
  t->slices = (t->half + t->slice - 1) / t->slice;
}

void hccl_two_begin(struct hot* h) {
  struct two* t = &h->two;
  const struct op* op = &h->pending.op;
  uint64_t size = hccl_hot_sizes[op->type];
  cut(t, op->count, size);
  t->round = t->at = 0;
  t->theirs = NULL;
  h->pending.next = 1 - h->rank;
  struct shots* own = shots_of(h, h->rank);
  uint64_t other_chunk = h->rank ? 0 : t->half, own_chunk = h->rank ? t->half : 0;
  __atomic_store_n(&own->print, h->pending.print, __ATOMIC_RELAXED);
  __atomic_store_n(&own->room, t->room_off, __ATOMIC_RELAXED);
  __atomic_store_n(&own->phase[SENT], ((uintptr_t)op->send + other_chunk * size) % LINE, __ATOMIC_RELAXED);
  __atomic_store_n(&own->phase[MADE], ((uintptr_t)op->recv + own_chunk * size) % LINE, __ATOMIC_RELAXED);
}

// Offset in a room of slice i of the pending operation.
static uint64_t slot(const struct two* t, int half, uint64_t i, uint64_t phase) {
  return (half * (uint64_t)ROOM_SLOTS + (t->done + i) % ROOM_SLOTS) * SLOT + phase;
}

// Slice i of a rank's chunk: its first element in the vector; *n elements, of which the shorter chunk may have none.
static uint64_t range(const struct hot* h, uint32_t rank, uint64_t i, uint64_t* n) {
  const struct two* t = &h->two;
  uint64_t from = (rank ? t->half : 0) + i * t->slice, end = rank ? h->pending.op.count : t->half;
  *n = from >= end ? 0 : end - from < t->slice ? end - from : t->slice;
  return from;
}

static struct hccl_cmd command(const struct hot* h, uint8_t what, uint64_t n) {
  const struct op* op = &h->pending.op;
  struct hccl_cmd c = {.op = what, .red = op->red, .src_type = op->type, .acc = op->type, .dst_type = op->type, .nsrc = 1, .ndst = 1,
                       .scaled = -1, .n = n, .scale = op->scale};
  return c;
}

static int run(const struct hot* h, const struct hccl_cmd* c) { return c->n && h->kernel(c, 1); }

static int send(struct hot* h, uint64_t i) {
  struct two* t = &h->two;
  struct shots* own = shots_of(h, h->rank);
  uint64_t n, from = range(h, 1 - h->rank, i, &n);
  struct hccl_cmd c = command(h, HCCL_COPY, n);
  c.scaled = h->pending.op.red == HCCL_PREMULSUM ? 0 : -1;
  c.shared = 1;
  c.src[0] = (uintptr_t)h->pending.op.send + from * hccl_hot_sizes[h->pending.op.type];
  c.dst[0] = (uintptr_t)t->room + slot(t, SENT, i, own->phase[SENT]);
  int bad = run(h, &c);
  __atomic_store_n(&own->sent, t->done + i + 1, __ATOMIC_RELEASE);
  return bad;
}

// The other's first slice is there: where the rest will be, if it is of the same operation.
static int meet(struct hot* h) {
  struct two* t = &h->two;
  struct shots* other = shots_of(h, 1 - h->rank);
  if (__atomic_load_n(&other->print, __ATOMIC_RELAXED) != h->pending.print) return POLL_MISMATCH;
  uint64_t off = __atomic_load_n(&other->room, __ATOMIC_RELAXED);
  for (int k = 0; k < 2; k++) t->phase[k] = __atomic_load_n(&other->phase[k], __ATOMIC_RELAXED) % LINE; // a peer's word is checked
  if (off > t->their_size || t->their_size - off < 2 * ROOM_SLOTS * (uint64_t)SLOT) return POLL_FAILED;
  t->theirs = t->their_view + off;
  return 0;
}

static int make(struct hot* h, uint64_t i) {
  struct two* t = &h->two;
  const struct op* op = &h->pending.op;
  struct shots* own = shots_of(h, h->rank);
  uint64_t size = hccl_hot_sizes[op->type], n, from = range(h, h->rank, i, &n);
  struct hccl_cmd c = command(h, HCCL_REDUCE, n);
  c.acc = accumulator(op->type, op->red);
  c.nsrc = c.ndst = 2;
  c.scaled = op->red == HCCL_PREMULSUM ? (int8_t)h->rank : -1;
  c.stream = op->count * size >= t->stream_from;
  c.shared = 1;
  c.div = 2;
  c.src[h->rank] = (uintptr_t)op->send + from * size;
  c.src[1 - h->rank] = (uintptr_t)t->theirs + slot(t, SENT, i, t->phase[SENT]);
  c.dst[0] = (uintptr_t)op->recv + from * size;
  c.dst[1] = (uintptr_t)t->room + slot(t, MADE, i, own->phase[MADE]);
  int bad = run(h, &c);
  __atomic_store_n(&own->made, t->done + i + 1, __ATOMIC_RELEASE);
  return bad;
}

static int keep(struct hot* h, uint64_t i) {
  struct two* t = &h->two;
  const struct op* op = &h->pending.op;
  uint64_t size = hccl_hot_sizes[op->type], n, from = range(h, 1 - h->rank, i, &n);
  struct hccl_cmd c = command(h, HCCL_COPY, n);
  c.stream = op->count * size >= t->stream_from;
  c.src[0] = (uintptr_t)t->theirs + slot(t, MADE, i, t->phase[MADE]);
  c.dst[0] = (uintptr_t)op->recv + from * size;
  return run(h, &c);
}

// Does one stage of a round. POLL_NOT_YET: the other is not as far.
static int stage(struct hot* h) {
  struct two* t = &h->two;
  const struct shots* other = shots_of(h, 1 - h->rank);
  uint64_t i = t->round - (t->at == 0 ? 0 : t->at == 1 ? AHEAD : AHEAD + 1);
  if (i >= t->slices) return POLL_MOVED; // none in this round; before the first one i is negative, which is a large number
  int bad;
  if (t->at == 0) {
    bad = send(h, i);
  } else if (t->at == 1) {
    if (__atomic_load_n(&other->sent, __ATOMIC_ACQUIRE) < t->done + i + 1) return POLL_NOT_YET;
    if (i == 0 && (bad = meet(h))) return bad;
    bad = make(h, i);
  } else {
    if (__atomic_load_n(&other->made, __ATOMIC_ACQUIRE) < t->done + i + 1) return POLL_NOT_YET;
    return keep(h, i) ? POLL_FAILED : POLL_MOVED; // nothing that the other waits for
  }
  hccl_hot_ring(h);
  return bad ? POLL_FAILED : POLL_MOVED;
}

static int finish(struct hot* h) {
  struct two* t = &h->two;
  t->done += t->slices;
  __atomic_store_n(&shots_of(h, h->rank)->kept, t->done, __ATOMIC_RELEASE);
  h->pending.active = 0;
  __atomic_store_n(&h->pending.item, NULL, __ATOMIC_RELAXED);
  return POLL_DONE;
}

int hccl_two_poll(struct hot* h) {
  struct two* t = &h->two;
  int moved = 0;
  for (; t->round < t->slices + AHEAD + 1; t->round++, t->at = 0) {
    for (; t->at < 3; t->at++) {
      int r = stage(h);
      if (r == POLL_NOT_YET) return moved ? POLL_MOVED : POLL_NOT_YET;
      if (r == POLL_FAILED) h->pending.failed = 1;
      if (r != POLL_MOVED) return r;
      if (++moved == BURST) {
        t->at++;
        return POLL_MOVED;
      }
    }
  }
  return finish(h);
}
