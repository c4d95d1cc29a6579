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
  HCCL_NAME_SIZE = 64, // of commName, with its end; longer ones are cut
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
  _Atomic uint64_t number;  // the core's name for it
  int device, blocking;
  int32_t min_channels, max_channels; // 0: choose

  pthread_mutex_t mu;       // guards what follows
  char name[HCCL_NAME_SIZE]; // for splits that inherit; "": none
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

// The core's number of a communicator; 0, which is nobody's, if the entry has become another's since it was found.
static inline uint64_t hccl_number(const struct hccl_comm* c, ncclComm_t comm) {
  uint64_t number = atomic_load_explicit(&c->number, memory_order_acquire);
  return atomic_load_explicit(&c->handle, memory_order_relaxed) == (uintptr_t)comm ? number : 0;
}

static inline ncclComm_t hccl_handle(const struct hccl_comm* c) { return (ncclComm_t)atomic_load(&c->handle); }

// The entry of a handle, or NULL with a text that names the caller.
struct hccl_comm* hccl_need(ncclComm_t comm, const char* who);
// A new entry with a number that was never used; NULL with a text if there is no room.
struct hccl_comm* hccl_comm_new(const char* who);
// Lets go of a handle, once: later calls, also of other threads, do nothing.
void hccl_comm_release(ncclComm_t comm);
// Gives or, with NULL, takes the state for table.fast. It returns from taking when no thread uses what was there, also where another
// thread has let go of the handle meanwhile.
void hccl_set_hot(ncclComm_t comm, void* hot);
// A number for a communicator that has no handle here (a split without colour).
uint64_t hccl_new_number(void);

// For a fork: nobody else may be in the middle of a change.
void hccl_handles_lock(void);
void hccl_handles_unlock(void);
#endif
