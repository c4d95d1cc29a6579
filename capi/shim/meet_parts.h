// What the parts of the root know of each other: meet.c (ids, fork), meet_serve.c (the thread), meet_conn.c (connections),
// meet_hello.c (what ranks say), meet_roll.c (the roll call), meet_addrs.c (addresses), meet_host.c (ports, random bytes). All state is
// guarded by hccl_meet_mu, which the thread gives up only in poll().
#ifndef HCCL_MEET_PARTS_H
#define HCCL_MEET_PARTS_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "meet.h"
#include "sha256.h"

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 }; // of ncclResult_t
enum { MAX_JOINED = 16 };
enum { WINDOW = 1 << 16 }; // numbers of which a root remembers whether they were used
enum { MAX_TEXT = 2 * HCCL_MAX_LIBRARY, MAX_REASON = 12 + 4 * HCCL_MAX_NAMED + MAX_TEXT }; // bytes of why a roll has failed
enum { MAX_HELLO = HCCL_HELLO_SIZE + HCCL_MAX_LIBRARY + HCCL_MAX_CONTACT + HCCL_MAC_SIZE };

// What forked children and the maker share: which ids exist and which were used up.
struct ledger {
  uint64_t next; // numbers below exist; written by the maker alone
  uint64_t used; // how many of them were used up
  unsigned char bit[WINDOW / 8]; // of number % WINDOW
};

struct conn;

// The ranks that have come under one id: those of its part, or under the first of several also the speakers of the parts. A failed
// roll stays for a while to tell late ranks why.
struct roll {
  struct roll* next;
  uint64_t number;
  uint32_t nranks, ids; // of the communicator
  uint32_t first;       // rank of the part
  uint32_t n, here;
  uint32_t mark;        // of the encryption key of those who are here, 0: none
  int speakers;         // a roll of speakers
  struct conn** at;     // members from the first rank on, or speakers by their part; NULL: missing
  unsigned char* failed; // payload of the answer that all get
  size_t failed_len;
};

// A listener and the ids that are answered there.
struct root {
  struct root* next;
  int listener; // -1: closed, only connections are left
  int lock;     // memfd under a record lock of who answers; -1: none could be made, no child can take over
  int serving;  // this process answers
  int fixed;    // of an id made from NCCL_COMM_ID: one roll call, then it closes
  int64_t until; // milliseconds: end of standing by, or of waiting for the rank 0 of a fixed id
  uint64_t joined[MAX_JOINED], joins; // standing by is for these ids; the newest ones
  unsigned char tag[8], key[32]; // the ids' secrets are derived from the key: an id that is never used costs nothing
  uint16_t port;
  struct ledger* ledger;
  struct roll* rolls;
};

enum state { UNPROVEN, WAITING, ANSWERED };

struct conn {
  int fd; // -1: to be swept away
  int left; // it went before it sent a byte
  enum state state;
  struct root* root;
  struct roll* roll;
  int64_t until; // milliseconds; UNPROVEN and ANSWERED only
  uint32_t rank, slot, serial; // slot: in its roll
  unsigned char challenge[HCCL_CHALLENGE_SIZE], secret[16];
  size_t in_len, hello_len, out_len, out_sent;
  unsigned char* out;
  unsigned char in[MAX_HELLO]; // the hello, kept for its contact; requests are read behind it
  unsigned char request[HCCL_REQUEST_SIZE];
};

extern pthread_mutex_t hccl_meet_mu;
extern struct root* hccl_meet_roots;

// meet.c
void hccl_meet_secret(const struct root* r, uint64_t number, unsigned char secret[16]);
void hccl_meet_close_root(struct root* r); // closes the listener and gives the lock free
void hccl_meet_free_root(struct root* r);

// meet_serve.c
int hccl_meet_start(void); // makes sure that the thread runs and looks at the roots again; 0 or an errno
void hccl_meet_forget(void); // in a forked child: the thread and its connections are the parent's

// meet_conn.c
extern struct conn** hccl_meet_conns; // in the order of their arrival
extern size_t hccl_meet_count;
int hccl_meet_accept(struct root* r); // takes who waits at the listener; 0: no descriptor is left
void hccl_meet_receive(struct conn* c);
void hccl_meet_flush(struct conn* c);
// Sends an answer; one other than HCCL_MISSING is the last of its connection.
void hccl_meet_queue(struct conn* c, uint32_t kind, const unsigned char* payload, size_t n);
void hccl_meet_proven(struct conn* c); // from now on it is a rank's
void hccl_meet_drop(struct conn* c);   // closes; the memory stays until the sweep
void hccl_meet_sweep(void);
void hccl_meet_expire(int64_t now);
int hccl_meet_serves(const struct root* r); // whether r still has connections
void hccl_meet_drop_all(void);

// meet_roll.c
struct roll* hccl_meet_find(const struct root* r, uint64_t number, int speakers); // a failed one serves both
struct roll* hccl_meet_new_roll(struct root* r, const struct roll* like);
void hccl_meet_free_rolls(struct root* r);
int hccl_meet_used(const struct ledger* l, uint64_t number);
uint64_t hccl_meet_awaited(void); // ranks that are yet to come, of all rolls
uint32_t hccl_meet_part_of(uint32_t rank, uint32_t n, uint32_t ids);
uint32_t hccl_meet_first_of(uint32_t part, uint32_t n, uint32_t ids);
uint32_t hccl_meet_first_here(const struct roll* l);
uint32_t hccl_meet_missing(const struct roll* l, unsigned char* out); // the first ranks that are missing; how many it wrote
// The payload of a failure on account of a rank, of at most MAX_REASON bytes, and its length.
size_t hccl_meet_reason(unsigned char* payload, const struct roll* l, uint32_t why, uint32_t rank, const char* text);
// The rolls under a number have failed, and it is used up: all who wait are told, and who comes later too.
void hccl_meet_fail(struct root* r, uint64_t number, const unsigned char* payload, size_t n);
void hccl_meet_go(struct root* r, struct roll* l); // all have come
void hccl_meet_gone(struct conn* c);               // a proven rank's connection has ended
void hccl_meet_full(void);                         // no descriptor is left

// meet_hello.c
void hccl_meet_hello(struct conn* c);   // a whole hello is in c->in
void hccl_meet_request(struct conn* c); // a whole request is in c->request

// meet_addrs.c. An address is u8 4 or 6, then 16 bytes, of which IPv4 uses the first 4.
enum { HCCL_ADDRESS_SIZE = 17 };
struct packed {
  unsigned char count, left; // those there was room for, and likely ones for which there was none
  unsigned char bytes[HCCL_ID_SIZE - HCCL_ID_ADDRESSES];
};
struct sockaddr;
int hccl_meet_addresses(struct packed* out, char* err, size_t errlen); // 0, or -1
size_t hccl_meet_pack(unsigned char* out, size_t room, const unsigned char* address); // bytes, 0: too many
void hccl_meet_unpack(const unsigned char* in, unsigned char* address);
void hccl_meet_put_address(unsigned char* out, const struct sockaddr* sa);

// meet_host.c
int64_t hccl_meet_now(void); // milliseconds
int hccl_meet_random(void* out, size_t n);
int hccl_meet_listen(uint16_t* port, char* err, size_t errlen); // a listener on all interfaces, or -1
int hccl_meet_listen_at(const unsigned char* address, uint16_t port, char* err, size_t errlen);
int hccl_meet_resolve(const char* text, unsigned char* address, uint16_t* port, char* err, size_t errlen);
const char* hccl_meet_library(void); // where this object was loaded from

static inline uint32_t get16(const unsigned char* p) { return p[0] | (uint32_t)p[1] << 8; }
static inline uint32_t get32(const unsigned char* p) { return get16(p) | get16(p + 2) << 16; }
static inline uint64_t get64(const unsigned char* p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }
static inline void put16(unsigned char* p, uint32_t v) { p[0] = (unsigned char)v, p[1] = (unsigned char)(v >> 8); }
static inline void put32(unsigned char* p, uint32_t v) { put16(p, v & 0xffff), put16(p + 2, v >> 16); }
static inline void put64(unsigned char* p, uint64_t v) { put32(p, (uint32_t)v), put32(p + 4, (uint32_t)(v >> 32)); }
#endif
