#include "thread.h"
#include "group.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static _Atomic int made;

// drop runs when the thread ends. A group that is still open goes unfinished; where its handles were to be stored is not touched,
// because that may have been on the stack of a function that has returned.
static void drop(void* p) {
  struct hccl_thread* t = p;
  for (size_t k = 0; k < t->group.count; k++) t->group.extras[k].out = NULL;
  hccl_group_drop(&t->group);
  free(t->group.items);
  free(t->group.extras);
  free(t->value);
  free(t);
}

static void make_key(void) { atomic_store_explicit(&made, pthread_key_create(&key, drop) == 0, memory_order_release); }

struct hccl_thread* hccl_thread_if(void) {
  return atomic_load_explicit(&made, memory_order_acquire) ? pthread_getspecific(key) : NULL;
}

struct hccl_thread* hccl_thread(void) {
  pthread_once(&once, make_key);
  struct hccl_thread* t = hccl_thread_if();
  if (t != NULL || !made) return t;
  t = calloc(1, sizeof *t);
  if (t != NULL && pthread_setspecific(key, t) != 0) {
    free(t);
    t = NULL;
  }
  return t;
}
