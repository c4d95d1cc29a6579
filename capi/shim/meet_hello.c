// What ranks say at the roll call, and what becomes of it.
#define _GNU_SOURCE 1
#include <stdio.h>

#include "meet_parts.h"

// What a hello says, and the roll that it is for.
struct hello {
  uint32_t version, role;
  struct roll roll; // as it is to be made, if it is the first to come
};

static struct hello read_hello(const struct conn* c) {
  struct hello h = {.version = get16(c->in + HCCL_HELLO_VERSION), .role = c->in[HCCL_HELLO_ROLE]};
  struct roll* l = &h.roll;
  l->number = get64(c->in + HCCL_HELLO_NUMBER);
  l->nranks = get32(c->in + HCCL_HELLO_NRANKS);
  l->mark = get32(c->in + HCCL_HELLO_MARK);
  l->ids = get32(c->in + HCCL_HELLO_IDS) & 0xffffff;
  l->speakers = h.role == HCCL_SPEAKER;
  if (l->ids == 0 || l->nranks > HCCL_MAX_RANKS || l->ids > l->nranks || c->rank >= l->nranks || h.role > HCCL_HERALD) {
    l->n = 0;
    return h;
  }
  uint32_t part = hccl_meet_part_of(c->rank, l->nranks, l->ids);
  l->first = l->speakers ? 0 : hccl_meet_first_of(part, l->nranks, l->ids);
  l->n = l->speakers ? l->ids : hccl_meet_first_of(part + 1, l->nranks, l->ids) - l->first;
  return h;
}

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

// --- Refusing ---

// Fails the roll because of what c said, and tells c, which need not be on it.
static void refuse(struct conn* c, struct roll* l, uint32_t why, const char* text) {
  unsigned char payload[MAX_REASON];
  size_t n = hccl_meet_reason(payload, l, why, c->rank, text);
  hccl_meet_fail(c->root, l->number, payload, n);
  if (c->state != ANSWERED && c->fd >= 0) hccl_meet_queue(c, HCCL_FAILED, payload, n);
}

static void used_up(struct conn* c) {
  unsigned char payload[12] = {0};
  put32(payload, HCCL_WHY_USED);
  put32(payload + 4, c->rank);
  hccl_meet_queue(c, HCCL_FAILED, payload, sizeof payload);
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

// --- Coming ---

static void other_key(struct conn* c, struct roll* l, uint32_t mark) {
  char text[96];
  uint32_t here = hccl_meet_first_here(l);
  if (mark != 0 && l->mark != 0) snprintf(text, sizeof text, "rank %u has another encryption key than rank %u", c->rank, here);
  else if (mark != 0) snprintf(text, sizeof text, "rank %u has an encryption key, rank %u has none", c->rank, here);
  else snprintf(text, sizeof text, "rank %u has no encryption key, rank %u has one", c->rank, here);
  refuse(c, l, HCCL_WHY_KEY, text);
}

static void enrol(struct conn* c, struct roll* l, const struct roll* said) {
  char text[192];
  uint32_t slot = l->speakers ? hccl_meet_part_of(c->rank, l->nranks, l->ids) : c->rank - said->first;
  if (said->nranks != l->nranks) {
    snprintf(text, sizeof text, "rank %u was started with %u ranks, rank %u with %u", c->rank, said->nranks, hccl_meet_first_here(l),
             l->nranks);
    refuse(c, l, HCCL_WHY_NRANKS, text);
  } else if (said->ids != l->ids || said->first != l->first) {
    snprintf(text, sizeof text, "rank %u (%u ids) and rank %u (%u ids) came under one id, but not as ranks of one part: give all ranks the "
             "same ids in the same order", c->rank, said->ids, hccl_meet_first_here(l), l->ids);
    refuse(c, l, HCCL_WHY_IDS, text);
  } else if (l->at[slot]) {
    snprintf(text, sizeof text, "rank %u came twice: two processes or threads call init with the same rank and id", c->rank);
    refuse(c, l, HCCL_WHY_DUPLICATE, text);
  } else if (l->here > 0 && said->mark != l->mark) {
    other_key(c, l, said->mark);
  } else {
    c->roll = l;
    l->mark = said->mark;
    c->slot = slot;
    l->at[slot] = c;
    if (++l->here == l->n) hccl_meet_go(c->root, l);
  }
}

// The part of the asker's rank may have come already, or nobody of it yet.
static void tell_absent(struct conn* c, const struct roll* l) {
  unsigned char payload[4 + 4 * HCCL_MAX_NAMED];
  uint32_t named = hccl_meet_missing(l, payload + 4);
  put32(payload, l->n - l->here);
  hccl_meet_queue(c, HCCL_ABSENT, payload, 4 + 4 * (size_t)named);
}

static void take_news(struct conn* c, struct roll* l) {
  const unsigned char* news = c->in + HCCL_HELLO_SIZE + get16(c->in + HCCL_HELLO_LIBRARY);
  size_t n = get32(c->in + HCCL_HELLO_CONTACT);
  if (n < 12) {
    refuse(c, l, HCCL_WHY_GARBAGE, "a rank brought news that make no sense");
    return;
  }
  hccl_meet_fail(c->root, l->number, news, n);
  hccl_meet_queue(c, HCCL_FAILED, news, n);
}

void hccl_meet_hello(struct conn* c) {
  if (!proves(c, get64(c->in + HCCL_HELLO_NUMBER))) return;
  hccl_meet_proven(c);
  c->rank = get32(c->in + HCCL_HELLO_RANK);
  struct hello h = read_hello(c);
  struct roll *said = &h.roll, *l = hccl_meet_find(c->root, said->number, said->speakers);
  int sane = said->n > 0;
  if (!sane) said->n = 1; // for a roll that remembers why it failed
  if (l && l->failed) {
    hccl_meet_queue(c, HCCL_FAILED, l->failed, l->failed_len);
  } else if (hccl_meet_used(c->root->ledger, said->number)) {
    used_up(c);
  } else if (h.role == HCCL_ASKER && sane) {
    tell_absent(c, l ? l : said);
  } else if (!l && !(l = hccl_meet_new_roll(c->root, said))) {
    hccl_meet_queue(c, HCCL_FAILED, (const unsigned char[12]){HCCL_WHY_FULL}, 12);
  } else if (h.version != HCCL_WIRE_VERSION) {
    other_version(c, l);
  } else if (!sane) {
    refuse(c, l, HCCL_WHY_GARBAGE, "a rank is not below the number of ranks, or there are too many");
  } else if (h.role == HCCL_HERALD) {
    take_news(c, l);
  } else {
    enrol(c, l, said);
  }
}

// --- Asking ---

static void tell_missing(struct conn* c) {
  unsigned char payload[4 + 4 * HCCL_MAX_NAMED];
  uint32_t named = hccl_meet_missing(c->roll, payload + 4);
  put32(payload, c->roll->n - c->roll->here);
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
