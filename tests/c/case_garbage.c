/* A job that goes on while a driver throws garbage at every port where it listens.

   case_garbage SECONDS     4 ranks, which have so long

   It says "ready" once it listens, and obeys what it reads: a letter has it note its memory and say "noted", the end of the input ends
   the job. Then it has no more descriptors than at first, and hardly more memory than it noted. */
#include "case_ops.h"

#include <poll.h>

enum { GO, NOTE_MEMORY, END };
enum { MOST_KIB = 24 << 10, OFTEN = 64 };

static int heard(void) {
  struct pollfd in = {0, POLLIN, 0};
  char letter;
  if (poll(&in, 1, 0) <= 0) return GO;
  return read(0, &letter, 1) == 1 ? NOTE_MEMORY : END;
}

/* What rank 0 has heard, on all ranks. */
static int agreed(ncclComm_t comm) {
  int what = me == 0 ? heard() : GO;
  MUST(comm, ncclAllReduce(&what, &what, 1, ncclInt32, ncclMax, comm, NULL));
  return what;
}

/* A communicator that is made and left: ranks meet by the ports that strangers come to. */
static void another(void) {
  NOTE("another communicator");
  ncclComm_t comm = comm_of(1, ranks, me);
  MUST(comm, sum_checked(comm, 1000));
  MUST(comm, ncclCommDestroy(comm));
  meet();
}

static int settled(int most) {
  for (double end = now() + 20; descriptors() > most && now() < end;) usleep(10000);
  return descriptors();
}

static void garbage_body(void) {
  long memory = 0, after, sums = 0;
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 100000));
  another();
  const int fds = descriptors();
  meet();
  if (me == 0) puts("ready");
  for (int what = GO; what != END; sums++) {
    NOTE("all-reduce %ld", sums);
    MUST(comm, sum_checked(comm, sums % 2 == 0 ? 100 : 100000));
    if (sums % OFTEN == 0) another();
    if ((what = agreed(comm)) == NOTE_MEMORY) {
      memory = proc_number("/proc/self/status", "VmRSS");
      if (me == 0) puts("noted");
    }
  }
  const int left = settled(fds);
  after = proc_number("/proc/self/status", "VmRSS");
  CHECK(left <= fds, "%d descriptors, %d before strangers came", left, fds);
  CHECK(after - memory < MOST_KIB, "%ld KiB of memory, %ld before most of the strangers came", after, memory);
  printf("rank %d: %ld all-reduces, %ld communicators, descriptors %d to %d, memory %ld to %ld KiB\n", me, sums, (sums + OFTEN - 1) / OFTEN,
         fds, left, memory, after);
  MUST(comm, ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "case_garbage SECONDS\n"), 2;
  return job_run(4, atof(argv[1]), garbage_body) != 0;
}
