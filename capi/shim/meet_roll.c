// The roll call: which ranks have come under an id, what they are told, and when it has failed.
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "meet_parts.h"

enum { MAX_FAILED = 64, MAX_TEXT = 2 * HCCL_MAX_LIBRARY }; // failed rolls that a root remembers; bytes of a reason

// --- Rolls ---

static struct roll* find(const struct root* r, uint64_t number) {
  struct roll* l = r->rolls;
  while (l && l->number != number) l = l->next;
  return l;
}

static struct roll* new_roll(struct root* r, uint64_t number, uint32_t n) {
  struct roll* l = calloc(1, sizeof *l);
  if (!l) return NULL;
  l->at = calloc(n, sizeof *l->at);
  if (!l->at) {
    free(l);
    return NULL;
  }
  l->number = number;
  l->n = n;
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

// --- Failing ---

static uint32_t first_here(const struct roll* l) {
  for (uint32_t k = 0; k < l->n; k++)
    if (l->at[k]) return k;
  return 0;
}

// Writes the first missing ranks to out and returns how many it wrote; all counts them all.
static uint32_t missing(const struct roll* l, unsigned char* out, uint32_t* all) {
  uint32_t n = 0;
  *all = l->n - l->here;
  for (uint32_t k = 0; k < l->n && n < HCCL_MAX_NAMED; k++)
    if (!l->at[k]) put32(out + 4 * n++, k);
  return n;
}

// The roll call has failed because of one rank: all who wait are told, and who comes later too.
static void fail_roll(struct root* r, struct roll* l, uint32_t why, uint32_t rank, const char* text) {
  unsigned char payload[12 + 4 * HCCL_MAX_NAMED + MAX_TEXT];
  uint32_t all, named = why == HCCL_WHY_TIMEOUT ? missing(l, payload + 12, &all) : 0;
  size_t n = 12 + 4 * (size_t)named, len = strlen(text);
  if (len > MAX_TEXT) len = MAX_TEXT;
  put32(payload, why);
  put32(payload + 4, rank);
  put32(payload + 8, named);
  memcpy(payload + n, text, len);
  n += len;
  for (uint32_t k = 0; k < l->n; k++)
    if (l->at[k]) hccl_meet_queue(l->at[k], HCCL_FAILED, payload, n);
  free(l->at);
  l->at = NULL;
  l->failed = malloc(n);
  l->failed_len = n;
  if (l->failed) memcpy(l->failed, payload, n);
  mark_used(r, l->number);
  if (!l->failed) {
    remove_roll(r, l);
    free_roll(l);
  }
  trim_failed(r);
}

// Fails the roll because of what c said, and tells c, which need not be on it.
static void refuse(struct conn* c, struct roll* l, uint32_t why, const char* text) {
  struct root* r = c->root;
  unsigned char payload[12 + MAX_TEXT] = {0};
  size_t n = strlen(text) < MAX_TEXT ? strlen(text) : MAX_TEXT;
  fail_roll(r, l, why, c->rank, text);
  if (c->state == ANSWERED || c->fd < 0) return;
  put32(payload, why);
  put32(payload + 4, c->rank);
  memcpy(payload + 12, text, n);
  hccl_meet_queue(c, HCCL_FAILED, payload, 12 + n);
}

static void used_up(struct conn* c) {
  unsigned char payload[12] = {0};
  put32(payload, HCCL_WHY_USED);
  put32(payload + 4, c->rank);
  hccl_meet_queue(c, HCCL_FAILED, payload, sizeof payload);
}

void hccl_meet_gone(struct conn* c) {
  char text[96];
  snprintf(text, sizeof text, "rank %u went away while the others were being waited for", c->rank);
  c->state = ANSWERED; // no answer can reach it
  c->roll->at[c->rank] = NULL;
  c->roll->here--;
  fail_roll(c->root, c->roll, HCCL_WHY_GONE, c->rank, text);
}

void hccl_meet_full(void) {
  struct root* of = NULL;
  struct roll* most = NULL;
  char text[160];
  for (struct root* r = hccl_meet_roots; r; r = r->next)
    for (struct roll* l = r->rolls; l; l = l->next)
      if (r->serving && !l->failed && (!most || l->here > most->here)) most = l, of = r;
  if (!most || most->here == 0) return;
  snprintf(text, sizeof text, "the maker of the id has no descriptor left after %u of %u ranks: raise its limit (ulimit -n)", most->here,
           most->n);
  fail_roll(of, most, HCCL_WHY_FULL, first_here(most), text);
}

// --- Going ---

// The contacts of ranks r+1, r+2, r+4, ...: whom rank r connects to for the rounds.
static size_t partners(const struct roll* l, uint32_t rank, unsigned char* out) {
  uint32_t count = 0;
  size_t n = 4;
  for (uint32_t step = 1; step < l->n; step *= 2, count++) {
    uint32_t p = (rank + step) % l->n, len = get32(l->at[p]->in + HCCL_HELLO_CONTACT);
    put32(out + n, p);
    put32(out + n + 4, len);
    memcpy(out + n + 8, l->at[p]->in + HCCL_HELLO_SIZE + get16(l->at[p]->in + HCCL_HELLO_LIBRARY), len);
    n += 8 + len;
  }
  put32(out, count);
  return n;
}

// All have come: each is told its partners, and the roll is forgotten but for its number.
static void go(struct root* r, struct roll* l) {
  unsigned char payload[4 + 20 * (8 + HCCL_MAX_CONTACT)]; // 20 = log2 of HCCL_MAX_RANKS
  for (uint32_t k = 0; k < l->n; k++) hccl_meet_queue(l->at[k], HCCL_GO, payload, partners(l, k, payload));
  remove_roll(r, l);
  mark_used(r, l->number);
  free_roll(l);
}

// --- What ranks say ---

static int proves(struct conn* c, uint64_t number) {
  unsigned char mac[HCCL_MAC_SIZE];
  if (c->root->fixed) memcpy(c->secret, c->root->key, sizeof c->secret);
  else hccl_meet_secret(c->root, number, c->secret);
  size_t n = c->hello_len - HCCL_MAC_SIZE;
  struct hccl_hmac m;
  hccl_hmac_init(&m, c->secret, sizeof c->secret);
  hccl_hmac_add(&m, "hccl hello", 10);
  hccl_hmac_add(&m, c->challenge, sizeof c->challenge);
  hccl_hmac_add(&m, c->in, n);
  hccl_hmac_end(&m, mac);
  return number < __atomic_load_n(&c->root->ledger->next, __ATOMIC_ACQUIRE) && hccl_mac_equal(mac, c->in + n);
}

static void other_version(struct conn* c, struct roll* l) {
  char text[MAX_TEXT], library[HCCL_MAX_LIBRARY + 1] = {0};
  memcpy(library, c->in + HCCL_HELLO_SIZE, get16(c->in + HCCL_HELLO_LIBRARY));
  for (char* p = library; *p; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  snprintf(text, sizeof text, "rank %u speaks wire version %u (%s), the maker of the id speaks %d (%s): use one library in all ranks",
           c->rank, get16(c->in + HCCL_HELLO_VERSION), library, HCCL_WIRE_VERSION, hccl_meet_library());
  refuse(c, l, HCCL_WHY_VERSION, text);
}

static void enrol(struct conn* c, struct roll* l, uint32_t n) {
  char text[160];
  if (n != l->n) {
    snprintf(text, sizeof text, "rank %u was started with %u ranks, rank %u with %u", c->rank, n, first_here(l), l->n);
    refuse(c, l, HCCL_WHY_NRANKS, text);
  } else if (l->at[c->rank]) {
    snprintf(text, sizeof text, "rank %u came twice: two processes or threads call init with the same rank and id", c->rank);
    refuse(c, l, HCCL_WHY_DUPLICATE, text);
  } else {
    c->roll = l;
    l->at[c->rank] = c;
    if (++l->here == l->n) go(c->root, l);
  }
}

void hccl_meet_hello(struct conn* c) {
  uint64_t number = get64(c->in + HCCL_HELLO_NUMBER);
  uint32_t n = get32(c->in + HCCL_HELLO_NRANKS), version = get16(c->in + HCCL_HELLO_VERSION);
  if (!proves(c, number)) return;
  hccl_meet_proven(c);
  c->rank = get32(c->in + HCCL_HELLO_RANK);
  struct roll* l = find(c->root, number);
  if (l && l->failed) {
    hccl_meet_queue(c, HCCL_FAILED, l->failed, l->failed_len);
  } else if (hccl_meet_used(c->root->ledger, number)) {
    used_up(c);
  } else if (!l && !(l = new_roll(c->root, number, n > 0 && n <= HCCL_MAX_RANKS ? n : 1))) {
    hccl_meet_queue(c, HCCL_FAILED, (const unsigned char[12]){HCCL_WHY_FULL}, 12);
  } else if (version != HCCL_WIRE_VERSION) {
    other_version(c, l);
  } else if (n == 0 || n > HCCL_MAX_RANKS || c->rank >= n) {
    refuse(c, l, HCCL_WHY_GARBAGE, "a rank is not below the number of ranks, or there are too many");
  } else {
    enrol(c, l, n);
  }
}

static void tell_missing(struct conn* c) {
  unsigned char payload[4 + 4 * HCCL_MAX_NAMED];
  uint32_t all, named = missing(c->roll, payload + 4, &all);
  put32(payload, all);
  hccl_meet_queue(c, HCCL_MISSING, payload, 4 + 4 * (size_t)named);
}

void hccl_meet_request(struct conn* c) {
  uint32_t what = get32(c->request + HCCL_REQUEST_WHAT);
  char text[96];
  if (get32(c->request) != HCCL_REQUEST_MAGIC_VALUE || what < HCCL_ASK || what > HCCL_ABORT) {
    snprintf(text, sizeof text, "rank %u sent something else than this library would", c->rank);
    refuse(c, c->roll, HCCL_WHY_GARBAGE, text);
  } else if (what == HCCL_ASK) {
    tell_missing(c);
  } else if (what == HCCL_TIMEOUT) {
    snprintf(text, sizeof text, "the init limit of rank %u has passed", c->rank);
    refuse(c, c->roll, HCCL_WHY_TIMEOUT, text);
  } else {
    snprintf(text, sizeof text, "rank %u was aborted during init", c->rank);
    refuse(c, c->roll, HCCL_WHY_ABORTED, text);
  }
}
