// A Go runtime takes address space, threads and descriptors for granted while it starts: where a limit of the process, or of its
// container, refuses one of them, it writes a message and aborts. So they are taken here first, all at once, and given back; what
// is refused becomes an error of the call that wanted the core.
#define _GNU_SOURCE
#include "room.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  THREADS = 24,     // Go starts 20 to 22 of them at load
  DESCRIPTORS = 8,  // for Go's poller, and for a first thing to say
  SPACE_MIB = 2560, // of address space, nearly all of it only reserved; measured: 2,300, half of it heaps of threads in libc
};

static int space(void) {
  size_t n = (size_t)SPACE_MIB << 20;
  void* p = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p != MAP_FAILED && munmap(p, n) == 0;
}

static int descriptors(void) {
  int fds[DESCRIPTORS], n = 0;
  while (n < DESCRIPTORS && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0) n++;
  int error = errno, all = n == DESCRIPTORS;
  while (n > 0) close(fds[--n]);
  errno = error;
  return all;
}

static void* wait_for_all(void* gate) {
  pthread_mutex_lock(gate);
  pthread_mutex_unlock(gate);
  return NULL;
}

// The threads inherit a mask of all signals: the host's handlers do not run on them.
static int threads(void) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_t made[THREADS];
  int n = 0, error = 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&gate);
  while (n < THREADS && (error = pthread_create(&made[n], NULL, wait_for_all, &gate)) == 0) n++;
  pthread_mutex_unlock(&gate);
  for (int k = 0; k < n; k++) pthread_join(made[k], NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return n == THREADS;
}

int hccl_room_for_core(char* why, size_t size) {
  if (!space())
    snprintf(why, size, "it needs %d MiB of address space, hardly any of it memory (%s): raise ulimit -v", SPACE_MIB, strerror(errno));
  else if (!descriptors())
    snprintf(why, size, "it needs %d more descriptors (%s): close some or raise ulimit -n", DESCRIPTORS, strerror(errno));
  else if (!threads())
    snprintf(why, size, "it needs %d more threads (%s): raise ulimit -u, or pids.max of the container", THREADS, strerror(errno));
  else
    return 1;
  return 0;
}
