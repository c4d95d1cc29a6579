// The root's thread: one poll loop over the listeners and connections of all roots of this process.
//
// It is detached and nothing waits for it at exit. Nothing here blocks but poll(), in which the mutex is free.
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "meet_parts.h"

enum {
  STAND_BY_MS = 50, // how often a child looks whether the maker has died
  FULL_MS = 50,     // without descriptors the listeners rest for so long
  START_S = 5,      // for the thread to get through its start
};

static int running, bell = -1; // bell: an eventfd that ends poll()
static sem_t up;               // posted by the thread when it is through its start
static struct pollfd* polls;
static size_t polls_room;
static int64_t rest_until; // no descriptor was left: listeners are not polled until then

// Whether this process waits for an id that could still need another maker.
static int stands_by(const struct root* r, int64_t now) {
  uint64_t n = r->joins < MAX_JOINED ? r->joins : MAX_JOINED;
  if (r->serving || r->lock < 0 || now >= r->until) return 0;
  for (uint64_t k = 0; k < n; k++)
    if (!hccl_meet_used(r->ledger, r->joined[k])) return 1;
  return 0;
}

// A child takes over when the maker has died, which frees the lock.
static void stand_by(struct root* r) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(r->lock, F_SETLK, &whole) == 0) r->serving = 1;
}

// Fixed roots are done after one roll call, others where the host program closed their listener.
static void free_done_roots(void) {
  for (struct root** at = &hccl_meet_roots; *at;) {
    struct root* r = *at;
    if (r->listener >= 0 || hccl_meet_serves(r)) {
      at = &r->next;
      continue;
    }
    *at = r->next;
    hccl_meet_free_root(r);
  }
}

// Looks after each root's state; returns milliseconds until that is due again, -1: not, and -2: the thread has nothing to do.
static int look_after(int64_t now) {
  int wait = -2;
  for (struct root* r = hccl_meet_roots; r; r = r->next) {
    if (r->fixed && r->listener >= 0 && !r->rolls && now >= r->until) hccl_meet_close_root(r);
    if (stands_by(r, now)) stand_by(r);
    if (stands_by(r, now) || (r->serving && r->fixed && !r->rolls)) wait = STAND_BY_MS;
    else if (wait == -2 && (r->serving || hccl_meet_serves(r))) wait = -1;
  }
  return wait;
}

static int timeout(int wait, int64_t now) {
  int64_t next = wait < 0 ? INT64_MAX : now + wait;
  if (rest_until > now && rest_until < next) next = rest_until;
  for (size_t k = 0; k < hccl_meet_count; k++)
    if (hccl_meet_conns[k]->state != WAITING && hccl_meet_conns[k]->until < next) next = hccl_meet_conns[k]->until;
  return next == INT64_MAX ? -1 : next <= now ? 0 : (int)(next - now);
}

static size_t fill_polls(int64_t now) {
  size_t n = 1, need = hccl_meet_count + 1;
  for (struct root* r = hccl_meet_roots; r; r = r->next) need++;
  if (need > polls_room) {
    struct pollfd* more = realloc(polls, 2 * need * sizeof *polls);
    if (!more) return 0;
    polls = more, polls_room = 2 * need;
  }
  polls[0] = (struct pollfd){.fd = bell, .events = POLLIN};
  for (size_t k = 0; k < hccl_meet_count; k++, n++)
    polls[n] = (struct pollfd){.fd = hccl_meet_conns[k]->fd, .events = (short)(POLLIN | (hccl_meet_conns[k]->out_len ? POLLOUT : 0))};
  for (struct root* r = hccl_meet_roots; r; r = r->next, n++)
    polls[n] = (struct pollfd){.fd = r->serving && rest_until <= now ? r->listener : -1, .events = POLLIN};
  return n;
}

static void handle(size_t n, size_t were) {
  uint64_t ignored;
  if (polls[0].revents & POLLIN && read(bell, &ignored, sizeof ignored) < 0) ignored = 0; // EAGAIN: another look is all it asks
  for (size_t k = 0; k < were; k++) {
    if (polls[1 + k].revents & POLLOUT) hccl_meet_flush(hccl_meet_conns[k]);
    if (polls[1 + k].revents & ~POLLOUT) hccl_meet_receive(hccl_meet_conns[k]);
  }
  size_t at = 1 + were; // a root that came while the mutex was free stands before the others: it has its turn next time
  for (struct root* r = hccl_meet_roots; r && at < n; r = r->next, at++)
    if (polls[at].revents && polls[at].fd == r->listener && !hccl_meet_accept(r)) rest_until = hccl_meet_now() + FULL_MS;
}

static void* serve(void* unused) {
  prctl(PR_SET_NAME, "hccl-meet");
  sem_post(&up);
  pthread_mutex_lock(&hccl_meet_mu);
  for (int wait; (wait = look_after(hccl_meet_now())) != -2;) {
    int64_t now = hccl_meet_now();
    size_t were = hccl_meet_count, n = fill_polls(now);
    struct pollfd* p = polls;
    int ms = n > 0 ? timeout(wait, now) : FULL_MS;
    pthread_mutex_unlock(&hccl_meet_mu);
    int ready = poll(p, n, ms);
    pthread_mutex_lock(&hccl_meet_mu);
    if (ready > 0) handle(n, were);
    hccl_meet_expire(hccl_meet_now());
    hccl_meet_sweep();
    free_done_roots();
  }
  close(bell);
  bell = -1;
  running = 0;
  pthread_mutex_unlock(&hccl_meet_mu);
  return unused;
}

static int start_thread(void) {
  pthread_t t;
  pthread_attr_t small;
  sigset_t all, before;
  pthread_attr_init(&small);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&small, 256 << 10);
  sigfillset(&all); // the host's signals are for its own threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int e = pthread_create(&t, &small, serve, NULL);
  if (e == EINVAL) { // the host's thread-local data do not fit such a stack
    pthread_attr_setstacksize(&small, 8 << 20);
    e = pthread_create(&t, &small, serve, NULL);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&small);
  return e;
}

// What else is in the process (a sanitizer, an allocator) may take locks in a thread's start that fork() does not know of: a child
// forked meanwhile has them locked for ever. So this waits, under the mutex, which forks take too: they find the thread in poll()
// or waiting for the mutex. The limit is for a host that holds new threads back until its caller has returned.
static void wait_until_up(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += START_S;
  while (sem_timedwait(&up, &until) != 0 && errno == EINTR) {}
}

int hccl_meet_start(void) {
  uint64_t one = 1;
  if (bell < 0) bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) return errno;
  if (running) return write(bell, &one, sizeof one) == sizeof one || errno == EAGAIN ? 0 : errno;
  if (sem_init(&up, 0, 0) != 0) return errno;
  int e = start_thread();
  running = e == 0;
  if (running) wait_until_up();
  return e;
}

void hccl_meet_forget(void) {
  hccl_meet_drop_all();
  if (bell >= 0) close(bell);
  bell = -1;
  running = 0;
  rest_until = 0;
}
