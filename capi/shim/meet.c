// Unique ids, and what becomes of them in forked children. meet.h has the whole picture.
#define _GNU_SOURCE 1
#include "meet.h"
#include "../../internal/params/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "meet_parts.h"

pthread_mutex_t hccl_meet_mu = PTHREAD_MUTEX_INITIALIZER;
struct root* hccl_meet_roots; // all that this process answers for or has inherited
static struct root* own;      // the one for new ids; NULL: to be made

static int fail(int result, char* err, size_t errlen, const char* what, int e) {
  snprintf(err, errlen, "cannot make a unique id: %s: %s", what, strerror(e));
  return result;
}

// --- Roots ---

void hccl_meet_secret(const struct root* r, uint64_t number, unsigned char secret[16]) {
  unsigned char mac[HCCL_MAC_SIZE], n[8];
  struct hccl_hmac m;
  put64(n, number);
  hccl_hmac_init(&m, r->key, sizeof r->key);
  hccl_hmac_add(&m, n, sizeof n);
  hccl_hmac_end(&m, mac);
  memcpy(secret, mac, 16);
}

// The ledger is shared with children to come. Where memfd_create is refused it is still shared, but there is no lock, so that
// no child takes over.
static int make_ledger(struct root* r) {
  r->lock = (int)syscall(SYS_memfd_create, "hccl-meet", 9u); // MFD_CLOEXEC, MFD_NOEXEC_SEAL: a host may demand the latter
  if (r->lock < 0) r->lock = (int)syscall(SYS_memfd_create, "hccl-meet", 1u); // and an old kernel not know it
  struct rlimit most; // of files: beyond it ftruncate would be a deadly SIGXFSZ
  int fits = getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur >= sizeof *r->ledger;
  if (r->lock >= 0 && (!fits || ftruncate(r->lock, sizeof *r->ledger) != 0)) {
    close(r->lock);
    r->lock = -1;
  }
  void* p = mmap(NULL, sizeof *r->ledger, PROT_READ | PROT_WRITE, MAP_SHARED | (r->lock < 0 ? MAP_ANONYMOUS : 0), r->lock, 0);
  if (p == MAP_FAILED) return errno;
  r->ledger = p;
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (r->lock >= 0) fcntl(r->lock, F_SETLK, &whole);
  return 0;
}

void hccl_meet_close_root(struct root* r) {
  if (r->listener >= 0) close(r->listener);
  if (r->lock >= 0) close(r->lock);
  r->listener = r->lock = -1;
  r->serving = 0;
  if (own == r) own = NULL;
}

void hccl_meet_free_root(struct root* r) {
  hccl_meet_close_root(r);
  hccl_meet_free_rolls(r);
  if (r->ledger) munmap(r->ledger, sizeof *r->ledger);
  free(r);
}

static struct root* new_root(void) {
  struct root* r = calloc(1, sizeof *r);
  if (r) r->listener = r->lock = -1;
  return r;
}

// A root that answers from now on. On failure r is freed.
static int open_root(struct root* r, char* err, size_t errlen) {
  int e = make_ledger(r);
  r->serving = 1;
  r->next = hccl_meet_roots;
  if (e == 0) {
    hccl_meet_roots = r;
    e = hccl_meet_start();
    if (e == 0) return 0;
    hccl_meet_roots = r->next;
  }
  hccl_meet_free_root(r);
  return fail(SYSTEM_ERROR, err, errlen, "no memory or thread for the roll call", e);
}

static int make_own(char* err, size_t errlen) {
  struct root* r = new_root();
  if (!r) return fail(SYSTEM_ERROR, err, errlen, "no memory", ENOMEM);
  r->listener = hccl_meet_listen(&r->port, err, errlen);
  if (r->listener < 0 || hccl_meet_random(r->key, sizeof r->key) != 0 || hccl_meet_random(r->tag, sizeof r->tag) != 0) {
    if (r->listener >= 0) fail(SYSTEM_ERROR, err, errlen, "no random bytes", errno);
    hccl_meet_free_root(r);
    return SYSTEM_ERROR;
  }
  int res = open_root(r, err, errlen);
  if (res == SUCCESS) own = r;
  return res;
}

// --- Ids ---

static void put_head(unsigned char id[128], uint16_t port) {
  memset(id, 0, HCCL_ID_SIZE);
  put32(id + HCCL_ID_MAGIC, HCCL_ID_MAGIC_VALUE);
  put16(id + HCCL_ID_VERSION, HCCL_WIRE_VERSION);
  put16(id + HCCL_ID_PORT, port);
}

// An id of a fixed address: every process that reads the same NCCL_COMM_ID makes the same one, so its secret is only a checksum
// against other programs at that address.
static int fixed_id(const char* text, unsigned char id[128], char* err, size_t errlen) {
  unsigned char digest[HCCL_SHA256_SIZE], address[HCCL_ADDRESS_SIZE];
  uint16_t port;
  if (hccl_meet_resolve(text, address, &port, err, errlen) != 0) return INVALID_ARGUMENT;
  put_head(id, port);
  hccl_meet_pack(id + HCCL_ID_ADDRESSES, HCCL_ID_SIZE - HCCL_ID_ADDRESSES, address);
  id[HCCL_ID_COUNT] = id[HCCL_ID_FIXED] = 1;
  struct hccl_sha256 s;
  hccl_sha256_init(&s);
  hccl_sha256_add(&s, id, HCCL_ID_SIZE);
  hccl_sha256_end(&s, digest);
  memcpy(id + HCCL_ID_SECRET, digest, 16);
  memcpy(id + HCCL_ID_ROOT, digest + 16, 8);
  return SUCCESS;
}

// The next number. Its bit is that of a number that is now too old to be told from a used one.
static uint64_t take_number(struct ledger* l) {
  uint64_t k = __atomic_load_n(&l->next, __ATOMIC_RELAXED), at = k % WINDOW;
  unsigned char mask = (unsigned char)(1u << at % 8);
  unsigned char before = __atomic_fetch_and(&l->bit[at / 8], (unsigned char)~mask, __ATOMIC_RELAXED);
  if (k >= WINDOW && !(before & mask)) __atomic_fetch_add(&l->used, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&l->next, k + 1, __ATOMIC_RELEASE);
  return k;
}

int hccl_meet_new_id(unsigned char id[128], char* err, size_t errlen) {
  const char* fixed = hccl_setting("NCCL_COMM_ID");
  if (errlen > 0) err[0] = 0;
  if (fixed && *fixed) return fixed_id(fixed, id, err, errlen);
  struct packed addresses;
  if (hccl_meet_addresses(&addresses, err, errlen) != 0) return INVALID_USAGE;
  pthread_mutex_lock(&hccl_meet_mu);
  int res = own ? SUCCESS : make_own(err, errlen);
  if (res == SUCCESS) {
    uint64_t number = take_number(own->ledger);
    put_head(id, own->port);
    put64(id + HCCL_ID_NUMBER, number);
    hccl_meet_secret(own, number, id + HCCL_ID_SECRET);
    memcpy(id + HCCL_ID_ROOT, own->tag, sizeof own->tag);
    id[HCCL_ID_COUNT] = addresses.count;
    id[HCCL_ID_LEFT] = addresses.left;
    memcpy(id + HCCL_ID_ADDRESSES, addresses.bytes, sizeof addresses.bytes);
  }
  pthread_mutex_unlock(&hccl_meet_mu);
  return res;
}

// How long a process stands by for the maker of an id: as long as its ranks may wait.
static int64_t init_limit(void) {
  const char* text = hccl_setting("HCCL_INIT_TIMEOUT");
  double s = text ? strtod(text, NULL) : 0;
  return s > 0 && s < 1e6 ? (int64_t)(s * 1000) : 300000;
}

// Rank 0 of a fixed id listens for one roll call. A listener of the job before may be on its way out: up to a second for that.
static int join_fixed(const unsigned char* id, char* err, size_t errlen) {
  struct root* r = new_root();
  unsigned char address[HCCL_ADDRESS_SIZE];
  if (!r) return fail(SYSTEM_ERROR, err, errlen, "no memory", ENOMEM);
  hccl_meet_unpack(id + HCCL_ID_ADDRESSES, address);
  for (int64_t until = hccl_meet_now() + 1000;;) {
    pthread_mutex_lock(&hccl_meet_mu); // no fork between the listener's birth and its place in the list
    r->listener = hccl_meet_listen_at(address, (uint16_t)get16(id + HCCL_ID_PORT), err, errlen);
    if (r->listener >= 0 || errno != EADDRINUSE || hccl_meet_now() > until) break;
    pthread_mutex_unlock(&hccl_meet_mu);
    usleep(10000);
  }
  int res = SYSTEM_ERROR;
  if (r->listener >= 0) {
    r->fixed = 1;
    r->until = hccl_meet_now() + 10000;
    memcpy(r->key, id + HCCL_ID_SECRET, 16);
    memcpy(r->tag, id + HCCL_ID_ROOT, sizeof r->tag);
    res = open_root(r, err, errlen);
    if (res == SUCCESS) r->ledger->next = 1;
  } else {
    hccl_meet_free_root(r);
  }
  pthread_mutex_unlock(&hccl_meet_mu);
  return res;
}

int hccl_meet_join(const unsigned char id[128], int rank, char* err, size_t errlen) {
  if (errlen > 0) err[0] = 0;
  if (get32(id + HCCL_ID_MAGIC) != HCCL_ID_MAGIC_VALUE) {
    snprintf(err, errlen, "the unique id was not made by ncclGetUniqueId of this library");
    return INVALID_ARGUMENT;
  }
  if (id[HCCL_ID_FIXED]) return rank == 0 ? join_fixed(id, err, errlen) : SUCCESS;
  int e = 0;
  pthread_mutex_lock(&hccl_meet_mu);
  for (struct root* r = hccl_meet_roots; r; r = r->next) {
    if (r->serving || r->lock < 0 || memcmp(r->tag, id + HCCL_ID_ROOT, sizeof r->tag) != 0) continue;
    r->until = hccl_meet_now() + init_limit();
    r->joined[r->joins++ % MAX_JOINED] = get64(id + HCCL_ID_NUMBER);
    e = hccl_meet_start();
  }
  pthread_mutex_unlock(&hccl_meet_mu);
  return e ? fail(SYSTEM_ERROR, err, errlen, "no thread to stand by for its maker", e) : SUCCESS;
}

// --- Fork ---

void hccl_meet_fork_prepare(void) { pthread_mutex_lock(&hccl_meet_mu); }
void hccl_meet_fork_parent(void) { pthread_mutex_unlock(&hccl_meet_mu); }

static int unused_ids(const struct ledger* l) {
  return __atomic_load_n(&l->used, __ATOMIC_ACQUIRE) < __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);
}

// keep: listeners of ids that are not used up stay open, for hccl_meet_join.
static void in_child(int keep) {
  hccl_meet_forget();
  own = NULL;
  for (struct root** at = &hccl_meet_roots; *at;) {
    struct root* r = *at;
    hccl_meet_free_rolls(r);
    r->serving = 0;
    r->until = 0;
    r->joins = 0;
    if (keep && !r->fixed && r->lock >= 0 && unused_ids(r->ledger)) {
      at = &r->next;
      continue;
    }
    *at = r->next;
    hccl_meet_free_root(r);
  }
  pthread_mutex_unlock(&hccl_meet_mu);
}

void hccl_meet_fork_child(void) { in_child(1); }
void hccl_meet_core_loaded_child(void) { in_child(0); }
