// The hot state of a communicator, and the operations that ranks of one host do in C. See the package comment.
#ifndef HCCL_FAST_HOT_H
#define HCCL_FAST_HOT_H
#include <stddef.h>
#include <stdint.h>
#include "../../capi/core_table.h"
#include "../../device/host/cmd.h"

enum {
  LINE = 64,
  BLOCK_SIZE = 128, BLOCK_BELLS = LINE + 8, // of a rank's block in the segment: shm/layout.go, compared by a Go test
  MAX_BELLS = 1024,
  BOARD_LEN = 64,
  MAIL_GENS = 2, MAIL_INLINE = 48, MAIL_BYTES = 8192,
};

// The functions, of coll.Func, that go by mail.
enum { FUNC_ALL_REDUCE = 0, FUNC_ALL_GATHER = 3, FUNC_REDUCE_SCATTER = 4, FUNC_ALL_TO_ALL = 5, FUNC_BARRIER = 14 };

// The first line of a mail. Its stamp is stored last: who sees it sees the rest, and the body.
struct mail {
  uint64_t stamp; // number of the mail, from 1
  uint64_t print; // chain of the fingerprints up to this operation
  char data[MAIL_INLINE];
};

// A line of a board: shm's post.
struct post {
  uint64_t stamp, seq, lane_root, what, count, extra, hash, unused;
};

// How far a rank is in the two-shot path: a line for what it sends, one for what it has made, one for what it has finished.
struct shots {
  uint64_t sent;  // slices of all operations; stored after the rest of the line at the first slice of each
  uint64_t print; // as in a mail
  uint64_t room;  // offset of the rank's room in its process's arena
  uint64_t phase[2]; // where in their first lines slices begin: those that are sent, and results
  _Alignas(LINE) uint64_t made;
  _Alignas(LINE) uint64_t kept; // of operations that are finished
};

// Slots of a room: a slice is in slot i % ROOM_SLOTS of its half, by its number from the first operation on.
enum { ROOM_SLOTS = 4, SLOT = 128 << 10, SLICE_MOST = SLOT - 3 * LINE, TWO_MOST = 2 << 20 };

// The two-shot path of two ranks.
struct two {
  uint64_t most;  // bytes of the longest vector; 0: there is no such path here
  char* room;     // own, to write; NULL: none is lent
  uint64_t room_off;
  const char* their_view; // the other process's arena
  uint64_t their_size;
  char* shots;    // of both ranks
  uint64_t stream_from;
  uint64_t done;  // slices of the operations before
  // Of the operation that is pending:
  uint64_t half, slice, slices; // elements of the first rank's chunk and of a slice; slices of each chunk
  uint64_t round;
  uint32_t at;
  const char* theirs; // the other's room, once its first slice is there
  uint64_t phase[2];  // of the other
};

// A small operation.
struct op {
  uint32_t func, type, red;
  uint64_t count, scale;
  const void* send;
  void* recv;
};

// The operation whose mail is posted and whose result is not there.
struct pending {
  const struct hccl_item* item; // C left it to the core; NULL: the core's own
  struct op op;
  uint64_t seq, print;
  uint64_t bytes; // of a mail
  uint32_t next;  // ranks below have been heard
  uint8_t active, failed; // failed: a kernel refused, and no mail was posted
  uint8_t two; // it goes the two-shot path
};

struct hot {
  // Written at every operation, by whoever holds the lock.
  uint32_t lock; // 0 free, 1 held, 2 held and waited for: futex(2)
  uint32_t open; // whether C may take operations
  uint64_t seq;  // last number given in lane 0
  uint64_t mails, posts;
  uint64_t chain; // of the fingerprints of all operations so far: ranks that have parted ways do not agree again
  uint64_t print_what, print_count, print; // the last fingerprint: most operations are like the one before
  struct pending pending;
  struct two two;

  // Written once.
  _Alignas(LINE) uint32_t n;
  uint32_t rank, spins, yields;
  const uint32_t* why; // the rank's word in the segment: not 0, and nobody waits here
  char *blocks, *heads, *bodies, *board;
  int (*kernel)(const struct hccl_cmd*, int);
  char* bells[]; // of each rank's process
};

// MOVED: it is not done, but further than it was.
enum { POLL_NOT_YET, POLL_DONE, POLL_MISMATCH, POLL_FAILED, POLL_MOVED };

extern const uint8_t hccl_hot_sizes[HCCL_TYPES]; // bytes of an element

struct hot* hccl_hot_new(uint32_t n);
void hccl_hot_free(struct hot* h);
int hccl_hot_fits(uint32_t func, uint32_t type, uint32_t red, uint64_t count, uint32_t n);
uint64_t hccl_hot_hash(uint64_t what, uint64_t count, uint64_t extra);

// With the lock held. what is func | type<<8 | red<<16 | flags<<24 | root<<32.
uint64_t hccl_hot_begin(struct hot* h, uint64_t what, uint64_t count, uint64_t extra);
int hccl_hot_post(struct hot* h, uint32_t func, uint32_t type, uint32_t red, uint64_t count, uint64_t scale, uintptr_t send,
                  uintptr_t recv);
int hccl_hot_poll(struct hot* h);
void hccl_hot_ring(struct hot* h);

// The two-shot path, twoshot.c: hccl_hot_post and hccl_hot_poll go on here for what fits.
int hccl_two_fits(const struct hot* h, uint32_t func, uint32_t type, uint32_t red, uint64_t count);
void hccl_two_begin(struct hot* h);
int hccl_two_poll(struct hot* h);

int hccl_hot_try(struct hot* h);
void hccl_hot_unlock(struct hot* h);

// hccl_core_table.fast.
int hccl_fast(void* hot, const struct hccl_item* item);
#endif
