// The root's connections: what comes in, what goes out, and how many there may be. All are touched by the root's thread alone,
// except that a forked child forgets them.
#define _GNU_SOURCE 1
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meet_parts.h"

enum {
  MAX_UNPROVEN = 128, // beside the ranks that are awaited; the oldest is dropped for a new one, so that strangers keep no rank out
  UNPROVEN_MS = 5000, // for a hello
  LINGER_MS = 1000,   // for the other end to close first after its last answer
  FULL_TOO_LONG_MS = 1000, // without a descriptor for those who come
  ACCEPTS_A_TURN = 64,
};

struct conn** hccl_meet_conns;
size_t hccl_meet_count;
static size_t room, unproven;
static int64_t full_since; // since when ranks or strangers wait for a descriptor; 0: none do
static unsigned long long strangers;

unsigned long long hccl_meet_strangers(void) {
  pthread_mutex_lock(&hccl_meet_mu);
  unsigned long long n = strangers;
  pthread_mutex_unlock(&hccl_meet_mu);
  return n;
}

// --- Living and dying ---

void hccl_meet_drop(struct conn* c) {
  if (c->fd < 0) return;
  close(c->fd);
  c->fd = -1;
  if (c->state == UNPROVEN) unproven--;
  if (c->state == UNPROVEN && !c->left) strangers++;
}

void hccl_meet_proven(struct conn* c) {
  c->state = WAITING;
  unproven--;
}

void hccl_meet_sweep(void) {
  size_t kept = 0;
  for (size_t k = 0; k < hccl_meet_count; k++) {
    if (hccl_meet_conns[k]->fd >= 0) {
      hccl_meet_conns[kept++] = hccl_meet_conns[k];
      continue;
    }
    free(hccl_meet_conns[k]->out);
    free(hccl_meet_conns[k]);
  }
  hccl_meet_count = kept;
}

static int drop_oldest_stranger(void) {
  for (size_t k = 0; k < hccl_meet_count; k++)
    if (hccl_meet_conns[k]->fd >= 0 && hccl_meet_conns[k]->state == UNPROVEN) return hccl_meet_drop(hccl_meet_conns[k]), 1;
  return 0;
}

void hccl_meet_flush(struct conn* c) {
  while (c->fd >= 0 && c->out_sent < c->out_len) {
    ssize_t k = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (k > 0) c->out_sent += (size_t)k;
    else if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    else if (k == 0 || errno != EINTR) {
      if (c->state == WAITING) hccl_meet_gone(c);
      hccl_meet_drop(c);
      return;
    }
  }
  c->out_len = c->out_sent = 0;
  if (c->state == ANSWERED && c->fd >= 0) shutdown(c->fd, SHUT_WR);
}

static unsigned char* more_out(struct conn* c, size_t n) {
  unsigned char* p = realloc(c->out, c->out_len + n);
  if (!p) return NULL;
  c->out = p;
  c->out_len += n;
  return p + c->out_len - n;
}

// Sends an answer; one other than MISSING is the last of its connection. Without memory the rank sees its connection end.
void hccl_meet_queue(struct conn* c, uint32_t kind, const unsigned char* payload, size_t n) {
  unsigned char* p = more_out(c, HCCL_ANSWER_SIZE + n + HCCL_MAC_SIZE);
  if (!p) {
    hccl_meet_drop(c);
    return;
  }
  memset(p, 0, HCCL_ANSWER_SIZE);
  put32(p + HCCL_ANSWER_MAGIC, HCCL_ANSWER_MAGIC_VALUE);
  put16(p + HCCL_ANSWER_KIND, kind);
  put32(p + HCCL_ANSWER_LENGTH, (uint32_t)n);
  put32(p + HCCL_ANSWER_SERIAL, c->serial++);
  if (n > 0) memcpy(p + HCCL_ANSWER_SIZE, payload, n);
  struct hccl_hmac m;
  hccl_hmac_init(&m, c->secret, sizeof c->secret);
  hccl_hmac_add(&m, "hccl answer", 11);
  hccl_hmac_add(&m, c->in + HCCL_HELLO_NONCE, 16);
  hccl_hmac_add(&m, c->challenge, sizeof c->challenge);
  hccl_hmac_add(&m, p, HCCL_ANSWER_SIZE + n);
  hccl_hmac_end(&m, p + HCCL_ANSWER_SIZE + n);
  if (kind != HCCL_MISSING) {
    c->state = ANSWERED;
    c->until = hccl_meet_now() + LINGER_MS;
  }
  hccl_meet_flush(c);
}

// --- Strangers and ranks arrive ---

static void challenge(struct conn* c) {
  put32(c->challenge + HCCL_CHALLENGE_MAGIC, HCCL_CHALLENGE_MAGIC_VALUE);
  put16(c->challenge + HCCL_CHALLENGE_VERSION, HCCL_WIRE_VERSION);
  memcpy(c->challenge + HCCL_CHALLENGE_ROOT, c->root->tag, sizeof c->root->tag);
  unsigned char* p = hccl_meet_random(c->challenge + HCCL_CHALLENGE_NONCE, 16) == 0 ? more_out(c, sizeof c->challenge) : NULL;
  if (!p) {
    hccl_meet_drop(c);
    return;
  }
  memcpy(p, c->challenge, sizeof c->challenge);
  hccl_meet_flush(c);
}

static void arrive(struct root* r, int fd) {
  int one = 1;
  struct conn* c = calloc(1, sizeof *c);
  if (c && hccl_meet_count == room) {
    struct conn** more = realloc(hccl_meet_conns, (2 * room + 64) * sizeof *hccl_meet_conns);
    if (more) hccl_meet_conns = more, room = 2 * room + 64;
  }
  if (!c || hccl_meet_count == room) {
    close(fd);
    free(c);
    return;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (unproven >= MAX_UNPROVEN && unproven >= MAX_UNPROVEN + hccl_meet_awaited()) drop_oldest_stranger();
  unproven++;
  *c = (struct conn){.fd = fd, .root = r, .until = hccl_meet_now() + UNPROVEN_MS};
  hccl_meet_conns[hccl_meet_count++] = c;
  challenge(c);
}

// A stranger's place may do. Where the ranks alone are too many they must not wait for ever.
static void out_of_descriptors(void) {
  int64_t now = hccl_meet_now();
  if (!full_since) full_since = now;
  if (drop_oldest_stranger() && now - full_since < FULL_TOO_LONG_MS) return;
  full_since = 0;
  hccl_meet_full();
}

int hccl_meet_accept(struct root* r) {
  for (int k = 0; k < ACCEPTS_A_TURN; k++) {
    int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      arrive(r, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      out_of_descriptors();
      return 0;
    } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
      // EBADF, ENOTSOCK, EINVAL: the host program closed a descriptor that it does not own. The next id gets a new root.
      if (errno != EAGAIN && errno != EWOULDBLOCK) hccl_meet_close_root(r);
      full_since = 0;
      return 1;
    }
  }
  return 1;
}

// --- Bytes of a connection ---

static size_t hello_length(const struct conn* c) {
  if (c->in_len < HCCL_HELLO_SIZE) return HCCL_HELLO_SIZE;
  return HCCL_HELLO_SIZE + get16(c->in + HCCL_HELLO_LIBRARY) + get32(c->in + HCCL_HELLO_CONTACT) + (size_t)HCCL_MAC_SIZE;
}

// Whether a head can be that of a hello. Checked before more is read: a stranger's bytes end here.
static int plausible(const struct conn* c) {
  if (c->in_len >= 4 && get32(c->in) != HCCL_HELLO_MAGIC_VALUE) return 0;
  return c->in_len < HCCL_HELLO_SIZE ||
         (get16(c->in + HCCL_HELLO_LIBRARY) <= HCCL_MAX_LIBRARY && get32(c->in + HCCL_HELLO_CONTACT) <= HCCL_MAX_CONTACT);
}

// Takes bytes as they come: a hello, then requests. Returns 0 when the connection is of no more use.
static int take(struct conn* c, const unsigned char* p, size_t n) {
  while (n > 0 && c->fd >= 0 && c->state != ANSWERED) {
    int proven = c->state == WAITING;
    size_t have = proven ? c->in_len - c->hello_len : c->in_len;
    size_t want = proven ? (size_t)HCCL_REQUEST_SIZE : hello_length(c);
    size_t part = want - have < n ? want - have : n;
    memcpy((proven ? c->request : c->in) + have, p, part);
    c->in_len += part, p += part, n -= part;
    if (!proven && !plausible(c)) return 0;
    if (have + part < want) continue;
    if (!proven && want > HCCL_HELLO_SIZE) {
      c->hello_len = c->in_len;
      hccl_meet_hello(c);
      if (c->state == UNPROVEN) return 0;
    } else if (proven) {
      c->in_len = c->hello_len;
      hccl_meet_request(c);
    }
  }
  return 1;
}

void hccl_meet_receive(struct conn* c) {
  unsigned char buffer[MAX_HELLO];
  for (int k = 0; k < 4 && c->fd >= 0; k++) {
    ssize_t n = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0 || !take(c, buffer, (size_t)n)) {
      c->left = n <= 0 && c->in_len == 0; // a rank that reached us at another of our addresses first, or a port scan
      if (c->state == WAITING) hccl_meet_gone(c);
      hccl_meet_drop(c);
    }
  }
}

// --- All of them ---

int hccl_meet_serves(const struct root* r) {
  for (size_t k = 0; k < hccl_meet_count; k++)
    if (hccl_meet_conns[k]->fd >= 0 && hccl_meet_conns[k]->root == r) return 1;
  return 0;
}

void hccl_meet_expire(int64_t now) {
  for (size_t k = 0; k < hccl_meet_count; k++) {
    struct conn* c = hccl_meet_conns[k];
    if (c->fd >= 0 && c->state != WAITING && c->until <= now) hccl_meet_drop(c);
  }
}

void hccl_meet_drop_all(void) {
  for (size_t k = 0; k < hccl_meet_count; k++)
    if (hccl_meet_conns[k]->fd >= 0) {
      close(hccl_meet_conns[k]->fd);
      hccl_meet_conns[k]->fd = -1;
    }
  hccl_meet_sweep();
  unproven = 0;
}
