// The shim's way in: one operation from begin to finish on the calling thread, without Go.
#define _GNU_SOURCE
#include <sched.h>
#include "hot.h"

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif

enum { LAST_HANDLE_OF_NULL_STREAM = 2 }; // NULL, cudaStreamLegacy and cudaStreamPerThread are the synchronous stream

enum { ELSEWHERE, MAIL, TWO_SHOT };

// The way that a call takes, or would: only the lock's holder may look at the room, which the core takes away from who needs none.
static int way_of(const struct hot* h, const struct hccl_item* it) {
  if (it->kind != HCCL_ITEM_CALL || (uintptr_t)it->stream > LAST_HANDLE_OF_NULL_STREAM) return ELSEWHERE;
  if (it->algo && it->algo[0]) return ELSEWHERE;
  if (!__atomic_load_n(&h->open, __ATOMIC_ACQUIRE) || __atomic_load_n(h->why, __ATOMIC_RELAXED)) return ELSEWHERE;
  if (hccl_hot_fits(it->func, (uint32_t)it->type, (uint32_t)it->red, it->count, h->n)) return MAIL;
  int fits = it->min_channels <= 1 && hccl_two_fits(h, it->func, (uint32_t)it->type, (uint32_t)it->red, it->count);
  return fits ? TWO_SHOT : ELSEWHERE;
}

// Waits for the others as long as it is likely to be short. POLL_NOT_YET: it is not, or there is a reason to look up.
static int await(struct hot* h) {
  int r;
  for (uint32_t k = 0; k < h->spins; k++) {
    if ((r = hccl_hot_poll(h)) == POLL_MOVED) k = 0;
    else if (r) return r;
    if (__atomic_load_n(h->why, __ATOMIC_RELAXED)) return POLL_NOT_YET;
    PAUSE();
  }
  for (uint32_t k = 0; k < h->yields; k++) {
    sched_yield();
    if ((r = hccl_hot_poll(h)) == POLL_MOVED) k = 0;
    else if (r) return r;
    if (__atomic_load_n(h->why, __ATOMIC_RELAXED)) return POLL_NOT_YET;
  }
  return POLL_NOT_YET;
}

int hccl_fast(void* hot, const struct hccl_item* it) {
  struct hot* h = hot;
  int way = way_of(h, it);
  if (way == ELSEWHERE || !hccl_hot_try(h)) return -1;
  if (!__atomic_load_n(&h->open, __ATOMIC_ACQUIRE) || (way == TWO_SHOT && !h->two.room)) { // lost while we took the lock
    hccl_hot_unlock(h);
    return -1;
  }
  int bad = hccl_hot_post(h, it->func, (uint32_t)it->type, (uint32_t)it->red, it->count, it->scale, (uintptr_t)it->send,
                          (uintptr_t)it->recv);
  if (!bad && await(h) == POLL_DONE) {
    hccl_hot_unlock(h);
    return 0;
  }
  __atomic_store_n(&h->pending.item, it, __ATOMIC_RELEASE); // the core goes on, with the lock
  return -1;
}
