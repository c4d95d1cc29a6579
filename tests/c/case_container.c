/* Shared memory and containers: little or no /dev/shm, crashes, namespaces, users, no right to read a neighbour's memory. */
#include "case_ops.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static void sweep(ncclComm_t comm, size_t most) {
  for (size_t bytes = 4; bytes <= most; bytes *= bytes < 65536 ? 32 : 16) ops_checked(comm, bytes / 4);
  ops_checked(comm, 1);
  ops_checked(comm, most / 4);
}

/* ---- all operations, with whatever /dev/shm the driver has left us ---- */

static void ops_body(void) {
  ncclComm_t comm = comm_new();
  sweep(comm, 1 << 20);
  NOTE("all-reduce of 8 MiB");
  MUST(comm, sum_checked(comm, 2 << 20));
  MUST(comm, ncclCommDestroy(comm));
}

/* ---- killed at a random moment, also while it starts ---- */

static double moment;

static void crash_body(void) {
  die_in(moment);
  ncclComm_t comm = comm_new();
  for (;;) {
    if (sum_checked(comm, 100000) != ncclSuccess) pause();
  }
}

static void whole_body(void) {
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 100000));
  MUST(comm, ncclCommDestroy(comm));
}

static int crash(void) {
  int faults = 0;
  srand(5);
  for (int k = 0; k < times(10, 100) && faults == 0; k++) {
    moment = 0.05 + 0.45 * rand() / RAND_MAX;
    faults += job_run(4, 30, crash_body);
  }
  return faults + job_run(4, 30, whole_body);
}

/* ---- ranks 0, 1 in one set of namespaces, 2, 3 in another ---- */

static int kinds; /* of namespace, as CLONE_ flags */

static void join(int leader) {
  static const struct { int flag; const char* name; } spaces[] = {
      {CLONE_NEWIPC, "ipc"}, {CLONE_NEWPID, "pid_for_children"}, {CLONE_NEWNET, "net"}, {CLONE_NEWNS, "mnt"}};
  char path[64];
  int fd[4];
  for (int k = 0; k < 4; k++) {
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)job->word[leader][0], spaces[k].name);
    fd[k] = kinds & spaces[k].flag ? open(path, 0) : -1;
  }
  for (int k = 0; k < 4; k++) {
    if (fd[k] >= 0 && setns(fd[k], 0) != 0) FAULT("setns %s: %s", spaces[k].name, strerror(errno));
    if (fd[k] >= 0) close(fd[k]);
  }
}

/* The wire between the two network namespaces: one veth pair, made by rank 0. */
static void wire(void) {
  char line[700];
  int a = (int)job->word[0][0], b = (int)job->word[2][0];
  snprintf(line, sizeof line,
           "PATH=$PATH:/sbin:/usr/sbin; ip link add cw0 netns /proc/%d/ns/net type veth peer name cw1 netns /proc/%d/ns/net &&"
           "nsenter --net=/proc/%d/ns/net sh -c 'ip addr add 10.10.1.1/24 dev cw0; ip link set cw0 up; ip link set lo up' &&"
           "nsenter --net=/proc/%d/ns/net sh -c 'ip addr add 10.10.1.2/24 dev cw1; ip link set cw1 up; ip link set lo up'",
           a, b, a, b);
  CHECK(system(line) == 0, "no wire: %s", line);
}

static void enter(void) {
  int leader = me & ~1;
  NOTE("namespaces");
  job->word[me][0] = getpid();
  if (me == leader) {
    if (unshare(kinds) != 0) FAULT("unshare: %s", strerror(errno));
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") != 0) FAULT("mount: %s", strerror(errno));
  }
  /* A namespace of processes must have its first process before a second can join it. */
  for (int turn = 0; turn < 2; turn++) {
    meet();
    if (turn == 1 && me != leader) join(leader);
    if ((turn == 0) == (me == leader) && kinds & CLONE_NEWPID) {
      pid_t child = fork();
      if (child != 0) {
        int status = 0;
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
  }
  meet();
  if (me == 0 && kinds & CLONE_NEWNET) wire();
  meet();
}

static void apart_body(void) {
  enter();
  setenv("HCCL_INIT_TIMEOUT", "20", 1);
  ncclComm_t comm = comm_new();
  for (size_t n = 1; n <= 1 << 18; n *= 64) ops_checked(comm, n);
  MUST(comm, ncclCommDestroy(comm));
  if (me % 2 == 0) wait_ended(me + 1); /* the end of a namespace's first process is the end of all in it */
}

/* ---- a job among others: its own number in every value ---- */

static long stamp;

static void steady_body(void) {
  for (int k = 0; k < times(60, 400); k++) {
    NOTE("round %d", k);
    ncclComm_t comm = comm_new();
    for (int i = 0; i < 10; i++) {
      int64_t mine[64], all[64 * 4];
      for (int j = 0; j < 64; j++) mine[j] = stamp * 1000 + me;
      MUST(comm, ncclAllGather(mine, all, 64, ncclInt64, comm, NULL));
      for (int j = 0; j < 64 * 4; j++) {
        if (all[j] != stamp * 1000 + j / 64) {
          FAULT("element %d is %ld: it is of another job than %ld", j, (long)all[j], stamp);
          break;
        }
      }
    }
    MUST(comm, ncclCommDestroy(comm));
  }
}

/* ---- no right to read each other ---- */

static const char* how;

static void rights_body(void) {
  if (!strcmp(how, "users") && (setgid(65534) != 0 || setuid(me % 2 ? 65533 : 65534) != 0)) FAULT("setuid: %s", strerror(errno));
  if (!strcmp(how, "caps")) {
    prctl(PR_CAPBSET_DROP, 19, 0, 0, 0); /* CAP_SYS_PTRACE */
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) FAULT("setuid: %s", strerror(errno));
  }
  prctl(PR_SET_DUMPABLE, 0); /* setuid clears it as well */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ncclComm_t comm = comm_new();
  sweep(comm, 1 << 18);
  NOTE("all-reduce of 64 MiB");
  MUST(comm, sum_checked(comm, 16 << 20));
  NOTE("all-gather of 16 MiB");
  MUST(comm, op_checked(ALL_GATHER, comm, 4 << 20, 0));
  NOTE("messages of 16 MiB");
  MUST(comm, op_checked(SEND_RECV, comm, 4 << 20, 0));
  MUST(comm, ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  how = argc > 2 ? argv[2] : "";
  if (!strcmp(what, "ops")) return job_run(8, 60, ops_body) != 0;
  if (!strcmp(what, "crash")) return crash() != 0;
  if (!strcmp(what, "apart")) {
    kinds = CLONE_NEWNS | CLONE_NEWIPC;
    if (!strcmp(how, "pid")) kinds |= CLONE_NEWPID;
    if (!strcmp(how, "net")) kinds |= CLONE_NEWPID | CLONE_NEWNET;
    return job_run(4, 60, apart_body) != 0;
  }
  if (!strcmp(what, "steady")) {
    stamp = atol(how);
    return job_run(4, 60, steady_body) != 0;
  }
  if (!strcmp(what, "rights")) return job_run(2, 60, rights_body) != 0;
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
