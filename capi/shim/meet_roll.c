// The roll call: which ranks have come under an id, what they are told, and when it has failed.
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "meet_parts.h"

enum { MAX_FAILED = 64 }; // failed rolls that a root remembers

// --- Rolls ---

// Under one number there may be two rolls, of members and of speakers. They fail together.
struct roll* hccl_meet_find(const struct root* r, uint64_t number, int speakers) {
  struct roll* l = r->rolls;
  while (l && (l->number != number || (l->speakers != speakers && !l->failed))) l = l->next;
  return l;
}

struct roll* hccl_meet_new_roll(struct root* r, const struct roll* like) {
  struct roll* l = malloc(sizeof *l);
  if (!l) return NULL;
  *l = *like;
  l->at = calloc(l->n, sizeof *l->at);
  if (!l->at) {
    free(l);
    return NULL;
  }
  l->next = r->rolls;
  r->rolls = l;
  return l;
}

static void free_roll(struct roll* l) {
  free(l->at);
  free(l->failed);
  free(l);
}

static void remove_roll(struct root* r, const struct roll* l) {
  struct roll** at = &r->rolls;
  while (*at != l) at = &(*at)->next;
  *at = l->next;
}

void hccl_meet_free_rolls(struct root* r) {
  for (struct roll* l; (l = r->rolls);) {
    r->rolls = l->next;
    free_roll(l);
  }
}

int hccl_meet_used(const struct ledger* l, uint64_t number) {
  uint64_t at = number % WINDOW;
  if (number + WINDOW < __atomic_load_n(&l->next, __ATOMIC_ACQUIRE)) return 1;
  return __atomic_load_n(&l->bit[at / 8], __ATOMIC_RELAXED) >> at % 8 & 1;
}

static void mark_used(struct root* r, uint64_t number) {
  if (hccl_meet_used(r->ledger, number)) return;
  __atomic_fetch_or(&r->ledger->bit[number % WINDOW / 8], (unsigned char)(1u << number % 8), __ATOMIC_RELAXED);
  __atomic_fetch_add(&r->ledger->used, 1, __ATOMIC_RELEASE);
  if (r->fixed) hccl_meet_close_root(r);
}

uint64_t hccl_meet_awaited(void) {
  uint64_t n = 0;
  for (const struct root* r = hccl_meet_roots; r; r = r->next)
    for (const struct roll* l = r->rolls; l; l = l->next)
      if (!l->failed) n += l->n - l->here;
  return n;
}

// --- Parts: rank r of n belongs to the part of one of several ids ---

uint32_t hccl_meet_part_of(uint32_t rank, uint32_t n, uint32_t ids) {
  uint32_t each = n / ids, larger = n % ids; // the first parts have one rank more
  return rank < larger * (each + 1) ? rank / (each + 1) : larger + (rank - larger * (each + 1)) / each;
}

uint32_t hccl_meet_first_of(uint32_t part, uint32_t n, uint32_t ids) {
  return part * (n / ids) + (part < n % ids ? part : n % ids);
}

static uint32_t rank_at(const struct roll* l, uint32_t slot) {
  return l->speakers ? hccl_meet_first_of(slot, l->nranks, l->ids) : l->first + slot;
}

// --- Failing ---

uint32_t hccl_meet_first_here(const struct roll* l) {
  for (uint32_t k = 0; k < l->n; k++)
    if (l->at[k]) return rank_at(l, k);
  return 0;
}

uint32_t hccl_meet_missing(const struct roll* l, unsigned char* out) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < l->n && n < HCCL_MAX_NAMED; k++)
    if (!l->at || !l->at[k]) put32(out + 4 * n++, rank_at(l, k));
  return n;
}

// The oldest of too many failed rolls goes; ranks that come later hear that the id was used.
static void trim_failed(struct root* r) {
  struct roll **oldest = NULL, *l;
  int failed = 0;
  for (struct roll** at = &r->rolls; *at; at = &(*at)->next)
    if ((*at)->failed) failed++, oldest = at;
  if (failed <= MAX_FAILED) return;
  l = *oldest;
  *oldest = l->next;
  free_roll(l);
}

static void end_roll(struct roll* l, const unsigned char* payload, size_t n) {
  for (uint32_t k = 0; k < l->n; k++)
    if (l->at[k]) hccl_meet_queue(l->at[k], HCCL_FAILED, payload, n);
  free(l->at);
  l->at = NULL;
  l->failed = malloc(n);
  l->failed_len = n;
  if (l->failed) memcpy(l->failed, payload, n);
}

void hccl_meet_fail(struct root* r, uint64_t number, const unsigned char* payload, size_t n) {
  for (struct roll** at = &r->rolls; *at;) {
    struct roll* l = *at;
    if (l->number == number && !l->failed) end_roll(l, payload, n);
    if (l->at || l->failed) {
      at = &l->next;
      continue;
    }
    *at = l->next;
    free_roll(l);
  }
  mark_used(r, number);
  trim_failed(r);
}

size_t hccl_meet_reason(unsigned char* payload, const struct roll* l, uint32_t why, uint32_t rank, const char* text) {
  uint32_t named = why == HCCL_WHY_TIMEOUT ? hccl_meet_missing(l, payload + 12) : 0;
  size_t n = 12 + 4 * (size_t)named, len = strlen(text);
  if (len > MAX_TEXT) len = MAX_TEXT;
  put32(payload, why);
  put32(payload + 4, rank);
  put32(payload + 8, named);
  memcpy(payload + n, text, len);
  return n + len;
}

void hccl_meet_gone(struct conn* c) {
  unsigned char payload[MAX_REASON];
  char text[96];
  snprintf(text, sizeof text, "rank %u went away while the others were being waited for", c->rank);
  c->state = ANSWERED; // no answer can reach it
  c->roll->at[c->slot] = NULL;
  c->roll->here--;
  hccl_meet_fail(c->root, c->roll->number, payload, hccl_meet_reason(payload, c->roll, HCCL_WHY_GONE, c->rank, text));
}

void hccl_meet_full(void) {
  struct root* of = NULL;
  struct roll* most = NULL;
  unsigned char payload[MAX_REASON];
  char text[160];
  for (struct root* r = hccl_meet_roots; r; r = r->next)
    for (struct roll* l = r->rolls; l; l = l->next)
      if (r->serving && !l->failed && (!most || l->here > most->here)) most = l, of = r;
  if (!most || most->here == 0) return;
  snprintf(text, sizeof text, "the maker of the id has no descriptor left after %u of %u ranks: raise its limit (ulimit -n)", most->here,
           most->n);
  hccl_meet_fail(of, most->number, payload, hccl_meet_reason(payload, most, HCCL_WHY_FULL, hccl_meet_first_here(most), text));
}

// --- Going ---

// The contacts of those 1, 2, 4, ... places further on: whom the one at slot connects to for the rounds.
static size_t partners(const struct roll* l, uint32_t slot, unsigned char* out) {
  uint32_t count = 0;
  size_t n = 4;
  for (uint32_t step = 1; step < l->n; step *= 2, count++) {
    const struct conn* p = l->at[(slot + step) % l->n];
    uint32_t len = get32(p->in + HCCL_HELLO_CONTACT);
    put32(out + n, p->rank);
    put32(out + n + 4, len);
    memcpy(out + n + 8, p->in + HCCL_HELLO_SIZE + get16(p->in + HCCL_HELLO_LIBRARY), len);
    n += 8 + len;
  }
  put32(out, count);
  return n;
}

// The id is used up then, but for the first of several, where the speakers are yet to meet. Whoever calls init with its ids again
// before they do must not wait for ever.
void hccl_meet_go(struct root* r, struct roll* l) {
  unsigned char payload[4 + 20 * (8 + HCCL_MAX_CONTACT)]; // 20 = log2 of HCCL_MAX_RANKS
  static const unsigned char used[12] = {HCCL_WHY_USED};
  for (uint32_t k = 0; k < l->n; k++) hccl_meet_queue(l->at[k], HCCL_GO, payload, partners(l, k, payload));
  remove_roll(r, l);
  if (l->speakers || l->ids == 1 || l->first > 0) hccl_meet_fail(r, l->number, used, sizeof used);
  free_roll(l);
}
