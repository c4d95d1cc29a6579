// What the thread that reads a userfaultfd leaves for Go.
#ifndef HCCL_REGISTRATION_READER_H
#define HCCL_REGISTRATION_READER_H

#include <stdint.h>

enum { HCCL_CHANGES = 4096, HCCL_UNMAPPED = 1, HCCL_MOVED, HCCL_DROPPED };

struct hccl_change {
  uint64_t start, end;
  uint64_t how;
};

// Words are read and written atomically. The reader writes all but tail.
struct hccl_changes {
  uint32_t busy;   // 1: the reader may have taken changes from the kernel that are not in the ring yet
  uint32_t missed; // 1: the ring was full; Go sets it back
  uint32_t ended;  // an errno: the reader has ended
  uint32_t proven; // by the trial: 1 the kernel tells changes and answers questions as expected, 2 it does not
  uint32_t bell;   // is rung after each reading; who waits for a change sleeps on it
  _Alignas(64) uint32_t head; // changes that ever were put in
  _Alignas(64) uint32_t tail; // changes that Go has taken
  _Alignas(64) uint64_t question[3]; // a struct uffdio_writeprotect of an empty range
  struct hccl_change ring[HCCL_CHANGES];
};

// Those of the process.
extern struct hccl_changes hccl_changes_here;

// hccl_changes_start starts a reader of fd, and returns an errno, or -1 where the kernel does not tell what becomes of trial, the size
// of a page and watched, which is unmapped for that.
int hccl_changes_start(struct hccl_changes* c, int fd, void* trial, uint64_t size);

#endif
