// Communicator handles. An ncclComm_t is a number, not an address: a mark in the upper bits that no pointer of a program has, a
// generation, and the index of an entry in a table that never shrinks.
//
//   63      48 47            20 19       0
//  |  mark    |  generation    |  index   |
//
// So a handle is judged without reading what it "points" at: NULL, garbage, the address of other memory and a handle whose
// communicator is gone are all errors, never crashes.
#ifndef HCCL_HANDLE_H
#define HCCL_HANDLE_H
#include "thread.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
  HCCL_INDEX_BITS = 20,
  HCCL_BLOCK_BITS = 6,
  HCCL_BLOCKS = 1 << (HCCL_INDEX_BITS - HCCL_BLOCK_BITS),
  HCCL_TEXTS = 4, // a text that was returned stays whole until four more errors of its communicator
};
#define HCCL_MARK 0x4843u

struct hccl_redop;

struct hccl_comm {
  _Atomic uintptr_t handle; // what the user holds; 0: the entry is free
  _Atomic(void*) hot;       // for table.fast, or NULL
  _Atomic uint32_t inside;  // threads in table.fast; whoever took hot away waits until there is none
  _Atomic int nranks;       // 0: not known yet (a split goes on). Written after rank
  _Atomic int rank;
  uint64_t id;              // the core's name for it
  int device, blocking;
  int32_t min_channels, max_channels; // 0: choose
  char* name;               // owned; for splits that inherit, NULL: none

  pthread_mutex_t mu;       // guards what follows
  struct hccl_redop* ops;
  size_t nops, ops_room;
  struct hccl_text* texts;  // HCCL_TEXTS of them in turn, made at the first error, kept for the entry's next communicator
  unsigned newest;

  uint32_t generation, next_free; // guarded by the table's mutex
};

extern _Atomic(struct hccl_comm*) hccl_blocks[HCCL_BLOCKS];
extern _Atomic uint32_t hccl_entries; // entries that exist; only grows

// The entry of a handle, or NULL.
static inline struct hccl_comm* hccl_find(ncclComm_t comm) {
  uintptr_t h = (uintptr_t)comm;
  uint32_t i = h & ((1u << HCCL_INDEX_BITS) - 1);
  if (h >> 48 != HCCL_MARK || i >= atomic_load_explicit(&hccl_entries, memory_order_acquire)) return NULL;
  struct hccl_comm* c = atomic_load_explicit(&hccl_blocks[i >> HCCL_BLOCK_BITS], memory_order_relaxed);
  c += i & ((1u << HCCL_BLOCK_BITS) - 1);
  return atomic_load_explicit(&c->handle, memory_order_acquire) == h ? c : NULL;
}

static inline ncclComm_t hccl_handle(const struct hccl_comm* c) { return (ncclComm_t)atomic_load(&c->handle); }

// The entry of a handle, or NULL with a text that names the caller.
struct hccl_comm* hccl_need(ncclComm_t comm, const char* who);
// A new entry with a number that was never used; NULL with a text if there is no room.
struct hccl_comm* hccl_comm_new(const char* who);
// Lets go of a handle, once: later calls, also of other threads, do nothing.
void hccl_comm_release(ncclComm_t comm);
// A number for a communicator that has no handle here (a split without colour).
uint64_t hccl_new_number(void);

// For a fork: nobody else may be in the middle of a change.
void hccl_handles_lock(void);
void hccl_handles_unlock(void);
#endif
