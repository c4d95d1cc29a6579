// hccl_host_run: checks a command, cuts it into blocks that stay in the first-level cache, and applies the loops of the table.
//
//   sources ──scale──> (own type) ──widen──> accumulator ──divide──> ──round──> Dst[0], Dst[1]
//
// Steps that a command does not need are left out; common forms (two sources, nothing else) are one loop from sources to
// destination. A block reads all of its inputs before it writes, so a destination may be a source.
#include <string.h>
#include "kernels.h"
#include "mode.h"
#include "shape.h"

enum { BLOCK = 4096 }; // bytes of the accumulator; at most four such areas live on the stack

// Where one block of a reduction stands, and its scratch memory.
struct block {
  const struct hccl_cmd* c;
  const struct shape* s;
  uint64_t at; // first element
  size_t n;    // elements
  _Alignas(64) unsigned char acc[BLOCK], wide[BLOCK], scaled[BLOCK], out[BLOCK];
};

// The elements of source i, scaled if they are to be.
static const void* input(struct block* b, int i) {
  const char* p = (const char*)b->c->src[i] + b->at * b->s->src_size;
  if (i != b->c->scaled) return p;
  b->s->scale(b->scaled, p, b->c->scale, b->n);
  return b->scaled;
}

// Adds source i to acc, both in the accumulator's type or the source in a narrower one.
static void combine(struct block* b, void* out, const void* acc, int i) {
  const void* x = input(b, i);
  if (!b->s->widen) {
    b->s->op(out, acc, x, b->n);
  } else if (b->s->add) {
    b->s->add(out, acc, x, b->n);
  } else {
    b->s->widen(b->wide, x, b->n);
    b->s->op(out, acc, b->wide, b->n);
  }
}

// Where the accumulation starts: at the partial sum, or at source 0. *next is the first source that is still to come.
static const void* start(struct block* b, int* next) {
  *next = 0;
  if (b->c->init) return (const char*)b->c->init + b->at * b->s->acc_size;
  *next = 1;
  const void* x = input(b, 0);
  if (!b->s->widen) return x;
  b->s->widen(b->acc, x, b->n);
  return b->acc;
}

// All sources in one pass, to the result or to the accumulator.
static void sum_all(struct block* b, void* out) {
  const void* at[HCCL_MAX_SRC];
  for (int i = 0; i < b->c->nsrc; i++) at[i] = (const char*)b->c->src[i] + b->at * b->s->src_size;
  if (b->s->roundk) b->s->roundk(out, at, b->c->nsrc, b->s->factor, b->n);
  else b->s->sumk(out, at, b->c->nsrc, b->n);
}

// One source after the other. The last combination writes to out, the ones before it to acc, which is no source.
static const void* sum_up(struct block* b, void* out) {
  int i, n = b->c->nsrc;
  const void* acc = start(b, &i);
  for (; i < n; i++) {
    void* to = i + 1 == n ? out : b->acc;
    combine(b, to, acc, i);
    acc = to;
  }
  return acc;
}

// Reduces a block into out. The last step of those that are needed writes there.
static void reduce_block(struct block* b, void* out) {
  const struct shape* s = b->s;
  if (s->roundk) {
    sum_all(b, out);
    return;
  }
  void* sum = s->divide || s->round ? b->acc : out;
  const void* acc = sum;
  if (s->sumk) sum_all(b, sum);
  else acc = sum_up(b, sum);
  if (s->divide) {
    void* to = s->round ? b->acc : out;
    s->divide(to, acc, s->div, b->n);
    acc = to;
  }
  if (s->round) s->round(out, acc, b->n);
  else if (acc != out) memmove(out, acc, b->n * s->acc_size); // one integer source: the same place, if in place
}

// Elements up to the first cache line boundary of the destination, so that the blocks after it write whole lines.
static size_t lead(const struct hccl_cmd* c, size_t size) {
  size_t bytes = -c->dst[0] & 63;
  return c->n > 256 && bytes % size == 0 ? bytes / size : 0;
}

// Elements of the block that starts at at.
static size_t block_size(const struct hccl_cmd* c, size_t at, size_t first, size_t most) {
  if (at == 0 && first != 0) return first;
  return c->n - at < most ? c->n - at : most;
}

// Elements from at on, in one loop.
static void two_at(const struct hccl_cmd* c, const struct shape* s, size_t at, size_t n) {
  size_t from = at * s->dst_size;
  char* out = (char*)c->dst[0] + from;
  const char *x = (const char*)c->src[0] + from, *y = (const char*)c->src[1] + from;
  if (c->ndst == 2) s->both(out, (char*)c->dst[1] + from, x, y, n);
  else s->two(out, x, y, n);
}

// Whether the sum of two can be streamed in one pass: the destination comes to a line after first elements.
static int streams(const struct hccl_cmd* c, const struct shape* s, size_t first) {
  return c->stream && s->streamed && ((c->dst[0] + first * s->dst_size) & 63) == 0;
}

static void stream_two(const struct hccl_cmd* c, const struct shape* s, size_t first) {
  size_t from = first * s->dst_size;
  if (first) two_at(c, s, 0, first);
  s->streamed((char*)c->dst[0] + from, c->ndst == 2 ? (char*)c->dst[1] + from : NULL, (const char*)c->src[0] + from,
              (const char*)c->src[1] + from, c->n - first);
}

static void reduce(const struct hccl_cmd* c, const struct shape* s, const struct hccl_kernels* k) {
  size_t most = BLOCK / (s->roundk ? s->dst_size : s->acc_size), first = lead(c, s->dst_size);
  if (!c->stream && (c->ndst == 1 ? s->two != NULL : s->both != NULL)) {
    if (first) two_at(c, s, 0, first);
    two_at(c, s, first, c->n - first);
    return;
  }
  if (streams(c, s, first)) {
    stream_two(c, s, first);
    return;
  }
  struct block b;
  b.c = c;
  b.s = s;
  for (b.at = 0; b.at < c->n; b.at += b.n) {
    b.n = block_size(c, b.at, first, most);
    size_t from = b.at * s->dst_size, bytes = b.n * s->dst_size;
    char* dst = (char*)c->dst[0] + from;
    void* out = c->stream ? (void*)b.out : dst;
    if (s->two) s->two(out, (const char*)c->src[0] + from, (const char*)c->src[1] + from, b.n);
    else reduce_block(&b, out);
    if (c->stream) k->stream(dst, out, bytes);
    if (c->ndst == 2) memmove((char*)c->dst[1] + from, out, bytes);
  }
}

// Copies a block of bytes to a destination, which may be the source.
static void put(const struct hccl_cmd* c, const struct hccl_kernels* k, int d, size_t at, const void* from, size_t bytes) {
  char* dst = (char*)c->dst[d] + at;
  if (dst == from) return;
  if (d == 0 && c->stream) k->stream(dst, from, bytes);
  else if (d == c->ndst - 1 && c->shared) k->hand(dst, from, bytes);
  else memcpy(dst, from, bytes);
}

// With one destination a copy is one piece; with two, or scaling, blocks keep the source in the cache.
static void copy(const struct hccl_cmd* c, const struct shape* s, const struct hccl_kernels* k) {
  const char* src = (const char*)c->src[0];
  if (c->ndst == 1 && !s->scale) {
    put(c, k, 0, 0, src, c->n * s->src_size);
    return;
  }
  _Alignas(64) unsigned char scaled[BLOCK];
  size_t most = BLOCK / s->src_size, first = lead(c, s->src_size), n;
  for (size_t at = 0; at < c->n; at += n) {
    n = block_size(c, at, first, most);
    size_t from = at * s->src_size;
    if (s->scale) s->scale(scaled, src + from, c->scale, n);
    for (int d = 0; d < c->ndst; d++) put(c, k, d, from, s->scale ? (const char*)scaled : src + from, n * s->src_size);
  }
}

// Stores around the caches are weakly ordered: a flag that is set after them must not be seen first.
static void stream_fence(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

int hccl_host_run(const struct hccl_cmd* cmds, int n) {
  const struct hccl_kernels* k = hccl_host_kernels();
  uint32_t mode = hccl_mode_enter();
  int bad = 0, streamed = 0;
  for (int i = 0; i < n && !bad; i++) {
    const struct hccl_cmd* c = &cmds[i];
    struct shape s;
    if (!shape_of(c, k, &s)) bad = i + 1;
    else if (c->n == 0) continue;
    else if (c->op == HCCL_COPY) copy(c, &s, k);
    else reduce(c, &s, k);
    streamed |= c->stream;
  }
  if (streamed) stream_fence();
  hccl_mode_leave(mode);
  return bad;
}
