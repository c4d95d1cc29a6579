#include "handle.h"
#include "core.h"
#include "error.h"
#include "redop.h"
#include <sched.h>
#include <stdlib.h>

_Atomic(struct hccl_comm*) hccl_blocks[HCCL_BLOCKS];
_Atomic uint32_t hccl_entries;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // guards the free list and the growth of the table
static uint32_t first_free = UINT32_MAX;
static _Atomic uint64_t last_number;

void hccl_handles_lock(void) { pthread_mutex_lock(&mu); }
void hccl_handles_unlock(void) { pthread_mutex_unlock(&mu); }

uint64_t hccl_new_number(void) { return atomic_fetch_add(&last_number, 1) + 1; }

static struct hccl_comm* entry(uint32_t i) {
  return atomic_load(&hccl_blocks[i >> HCCL_BLOCK_BITS]) + (i & ((1u << HCCL_BLOCK_BITS) - 1));
}

// grow adds a block of free entries, the lowest first in the list. It is called with mu.
static int grow(void) {
  uint32_t from = atomic_load(&hccl_entries), n = 1u << HCCL_BLOCK_BITS;
  if (from >> HCCL_INDEX_BITS) return 0;
  struct hccl_comm* block = calloc(n, sizeof *block);
  if (block == NULL) return 0;
  for (uint32_t i = n; i-- > 0;) {
    pthread_mutex_init(&block[i].mu, NULL);
    block[i].next_free = first_free;
    first_free = from + i;
  }
  atomic_store(&hccl_blocks[from >> HCCL_BLOCK_BITS], block);
  atomic_store_explicit(&hccl_entries, from + n, memory_order_release);
  return 1;
}

struct hccl_comm* hccl_comm_new(const char* who) {
  pthread_mutex_lock(&mu);
  if (first_free == UINT32_MAX && !grow()) {
    pthread_mutex_unlock(&mu);
    hccl_fail(NULL, ncclSystemError, "%s: no memory for another communicator", who);
    return NULL;
  }
  uint32_t i = first_free;
  struct hccl_comm* c = entry(i);
  first_free = c->next_free;
  c->generation = (c->generation + 1) & 0xfffffff;
  if (c->generation == 0) c->generation = 1;
  uintptr_t h = (uintptr_t)HCCL_MARK << 48 | (uintptr_t)c->generation << HCCL_INDEX_BITS | i;
  pthread_mutex_unlock(&mu);
  atomic_store_explicit(&c->number, hccl_new_number(), memory_order_release);
  atomic_store(&c->rank, -1);
  atomic_store(&c->nranks, 0);
  atomic_store(&c->hot, NULL);
  atomic_store_explicit(&c->handle, h, memory_order_release);
  return c;
}

static uint32_t index_of(ncclComm_t comm) { return (uintptr_t)comm & ((1u << HCCL_INDEX_BITS) - 1); }

// Taking hot away and a thread's entering table.fast (run.c) are ordered so: we clear hot, then count; it counts itself, then
// reads hot. One of the two sees the other.
static void wait_until_out(struct hccl_comm* c) {
  while (atomic_load(&c->inside) != 0) sched_yield();
}

void hccl_set_hot(ncclComm_t comm, void* hot) {
  if ((uintptr_t)comm >> 48 != HCCL_MARK) return; // a split without colour has none
  struct hccl_comm* c = entry(index_of(comm));
  pthread_mutex_lock(&mu);
  int ours = c->generation == ((uintptr_t)comm >> HCCL_INDEX_BITS & 0xfffffff); // else who let go of the handle has waited
  if (ours) atomic_store(&c->hot, atomic_load(&c->handle) == (uintptr_t)comm ? hot : NULL);
  pthread_mutex_unlock(&mu);
  if (ours && hot == NULL) wait_until_out(c);
}

void hccl_comm_release(ncclComm_t comm) {
  struct hccl_comm* c = hccl_find(comm);
  uintptr_t h = (uintptr_t)comm;
  if (c == NULL) return;
  pthread_mutex_lock(&mu);
  int first = atomic_compare_exchange_strong(&c->handle, &h, 0);
  if (first) atomic_store(&c->hot, NULL);
  pthread_mutex_unlock(&mu);
  if (!first) return;
  wait_until_out(c);
  pthread_mutex_lock(&c->mu);
  hccl_redops_free(c);
  c->name[0] = 0;
  for (int k = 0; c->texts != NULL && k < HCCL_TEXTS; k++) c->texts[k].when = 0;
  pthread_mutex_unlock(&c->mu);
  pthread_mutex_lock(&mu);
  c->next_free = first_free;
  first_free = index_of(comm);
  pthread_mutex_unlock(&mu);
}

struct hccl_comm* hccl_need(ncclComm_t comm, const char* who) {
  struct hccl_comm* c = hccl_find(comm);
  if (c != NULL || hccl_check_fork(who) != ncclSuccess) return c;
  const char* what = comm == NULL                            ? "is NULL"
                     : (uintptr_t)comm >> 48 == HCCL_MARK    ? "was destroyed or aborted"
                                                             : "is no communicator: use what an init call has given";
  hccl_fail(NULL, ncclInvalidArgument, "%s: comm %s", who, what);
  return NULL;
}
