#include "thread.h"
#include "group.h"
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int made;

static void drop(void* p) {
  struct hccl_thread* t = p;
  hccl_group_drop(&t->group);
  free(t->group.items);
  free(t->group.extras);
  free(t->value);
  free(t);
}

static void make_key(void) { made = pthread_key_create(&key, drop) == 0; }

struct hccl_thread* hccl_thread_if(void) {
  pthread_once(&once, make_key);
  return made ? pthread_getspecific(key) : NULL;
}

struct hccl_thread* hccl_thread(void) {
  struct hccl_thread* t = hccl_thread_if();
  if (t != NULL || !made) return t;
  t = calloc(1, sizeof *t);
  if (t != NULL && pthread_setspecific(key, t) != 0) {
    free(t);
    t = NULL;
  }
  return t;
}
