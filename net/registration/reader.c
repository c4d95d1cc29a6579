// The thread that reads what the kernel tells of watched memory.
//
// A thread that unmaps, moves or drops watched memory waits in the kernel until this one has read of it, wherever it is: inside malloc,
// in a signal handler, in Go's runtime with a processor of Go's in its hands, under any lock. So this thread depends on nothing that
// another could hold. It is no thread of Go, blocks all signals, takes no lock, allocates nothing, writes only to memory that is there,
// and puts what it reads into a ring; when that is full it says so and reads on.
#include "reader.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hccl_changes hccl_changes_here;

// As in linux/userfaultfd.h, which old systems do not have.
struct message {
  uint8_t event, reserved[7];
  uint64_t arg[3]; // removed and unmapped: start, end; moved: from, to, length
};
enum { EVENT_REMAP = 0x14, EVENT_REMOVE = 0x15, EVENT_UNMAP = 0x16 };
#define WRITEPROTECT 0xc018aa06UL

struct start {
  struct hccl_changes* c;
  int fd;
};

static uint32_t load(uint32_t* word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static void store(uint32_t* word, uint32_t v) { __atomic_store_n(word, v, __ATOMIC_SEQ_CST); }

static void wake(uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0); }

static void ring(struct hccl_changes* c) {
  store(&c->bell, c->bell + 1);
  wake(&c->bell);
}

static void finish(struct hccl_changes* c, int err) {
  store(&c->ended, (uint32_t)err);
  ring(c);
}

static void put(struct hccl_changes* c, const struct message* m) {
  struct hccl_change ch = {m->arg[0], m->arg[1], HCCL_UNMAPPED};
  if (m->event == EVENT_REMAP) ch.end = m->arg[0] + m->arg[2], ch.how = HCCL_MOVED;
  else if (m->event == EVENT_REMOVE) ch.how = HCCL_DROPPED;
  else if (m->event != EVENT_UNMAP) return;
  if (c->head - load(&c->tail) >= HCCL_CHANGES) {
    store(&c->missed, 1);
    return;
  }
  c->ring[c->head % HCCL_CHANGES] = ch;
  store(&c->head, c->head + 1);
}

// ask returns EAGAIN while a change is under way that has not been read, else EINVAL: the range is empty. Something else: fd is not ours.
static int ask(struct hccl_changes* c, int fd) { return ioctl(fd, WRITEPROTECT, c->question) == 0 ? 0 : errno; }

static void* run(void* arg) {
  struct start s = *(struct start*)arg;
  struct hccl_changes* c = s.c;
  struct message m[16];
  prctl(PR_SET_NAME, "hccl-memory");
  for (;;) {
    struct pollfd p = {s.fd, POLLIN, 0};
    if (poll(&p, 1, -1) < 0 && errno != EINTR) return finish(c, errno), NULL;
    if (p.revents == 0) continue;
    // Somebody may have closed the descriptor, and its number be another's: nothing is read from that.
    int is = p.revents & POLLIN ? ask(c, s.fd) : EBADF;
    if (is != EAGAIN && is != EINVAL) return finish(c, is == 0 ? EBADF : is), NULL;
    if (!load(&c->proven)) store(&c->proven, is == EAGAIN ? 1 : 2);
    store(&c->busy, 1);
    for (;;) {
      ssize_t n = read(s.fd, m, sizeof m);
      if (n <= 0) break;
      for (size_t k = 0; k < (size_t)n / sizeof *m; k++) put(c, &m[k]);
    }
    store(&c->busy, 0);
    ring(c);
  }
}

int hccl_changes_start(struct hccl_changes* c, int fd, void* trial, uint64_t size) {
  static struct start s; // outlives this call; there is one reader in a process
  s = (struct start){c, fd};
  pthread_t thread;
  pthread_attr_t attr;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, 256 << 10);
  int err = pthread_create(&thread, &attr, run, &s);
  if (err == EINVAL) { // static TLS of the program does not fit
    pthread_attr_destroy(&attr);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    err = pthread_create(&thread, &attr, run, &s);
  }
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (err != 0) return err;
  munmap(trial, size); // returns at once where nothing is told, else when the reader has read it
  return load(&c->proven) == 1 ? 0 : -1;
}
