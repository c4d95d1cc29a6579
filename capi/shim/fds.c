// One bit per descriptor, changed without a lock: the child of a fork must be able to read it whatever other threads did.
#include "core.h"
#include <unistd.h>

enum { WORDS = 1 << 14 }; // for 1 Mi descriptors, Linux's usual limit; pages of the table that are not used cost nothing

static _Atomic uint64_t open_fds[WORDS];
static _Atomic int top; // words in use: all open descriptors are below top * 64

void hccl_fd_opened(int fd) {
  if (fd < 0 || fd / 64 >= WORDS) return;
  atomic_fetch_or(&open_fds[fd / 64], 1ull << (fd % 64));
  int t = atomic_load(&top);
  while (t <= fd / 64 && !atomic_compare_exchange_weak(&top, &t, fd / 64 + 1)) {}
}

void hccl_fd_closed(int fd) {
  if (fd >= 0 && fd / 64 < WORDS) atomic_fetch_and(&open_fds[fd / 64], ~(1ull << (fd % 64)));
}

void hccl_fds_close_all(void) {
  for (int w = 0; w < atomic_load(&top); w++) {
    uint64_t bits = atomic_exchange(&open_fds[w], 0);
    for (int b = 0; bits != 0; b++, bits >>= 1)
      if (bits & 1) close(w * 64 + b);
  }
}
