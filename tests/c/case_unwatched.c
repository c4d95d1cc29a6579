/* Registered buffers where the kernel does not tell what becomes of them, and what there is in programs that register nothing. */
#include "case_log.h"
#include <linux/filter.h>
#include <linux/seccomp.h>

#define SIZE ((size_t)8 << 20)

static int teller = -1; /* the descriptor that tells what becomes of memory */

static int readers(void) { /* threads that read that, and descriptors */
  int n = 0;
  char path[300], text[64];
  DIR* d = opendir("/proc/self/task");
  for (struct dirent* e; d != NULL && (e = readdir(d)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
    FILE* f = fopen(path, "r");
    n += f != NULL && fgets(text, sizeof text, f) != NULL && strcmp(text, "hccl-memory\n") == 0;
    if (f != NULL) fclose(f);
  }
  closedir(d);
  d = opendir("/proc/self/fd");
  for (struct dirent* e; d != NULL && (e = readdir(d)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
    ssize_t k = readlink(path, text, sizeof text - 1);
    if (k > 0) text[k] = 0;
    if (k > 0 && strstr(text, "userfaultfd") != NULL) n++, teller = atoi(e->d_name);
  }
  closedir(d);
  return n;
}

static int wanted_readers;

static void lazy_body(void) {
  ncclComm_t c = comm_of(0, 1, 0);
  float x = 1;
  void* h = NULL;
  MUST(c, ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, c, NULL));
  CHECK(readers() == 0, "%d threads and descriptors before anything is registered", readers());
  for (int k = 0; k < 3; k++) {
    MUST(c, ncclCommRegister(c, &x, sizeof x, &h));
    MUST(c, ncclCommDeregister(c, h));
  }
  CHECK(readers() == wanted_readers, "%d threads and descriptors, want %d", readers(), wanted_readers);
  MUST(c, ncclCommDestroy(c));
}

/* The program closes descriptors that it does not know, and has another by that number. */
static void closed_body(void) {
  ncclComm_t c = comm_of(0, 1, 0);
  void *h = NULL, *again = NULL;
  int ends[2];
  char bytes[64] = {0}, *p = map_at(NULL, SIZE);
  MUST(c, ncclCommRegister(c, p, SIZE, &h));
  CHECK(readers() == 2, "%d threads and descriptors", readers());
  int bad = pipe(ends) != 0 || dup2(ends[0], teller) != teller || write(ends[1], bytes, sizeof bytes) != sizeof bytes;
  CHECK(!bad, "%s", strerror(errno));
  munmap(p, SIZE);
  for (int k = 0; k < 3; k++) {
    p = map_at(NULL, SIZE);
    MUST(c, ncclCommRegister(c, p, SIZE, &again));
    munmap(p, SIZE);
    MUST(c, ncclCommDeregister(c, again));
  }
  MUST(c, ncclCommDeregister(c, h));
  MUST(c, ncclCommDestroy(c));
  CHECK(read(ends[0], bytes, sizeof bytes) == sizeof bytes, "somebody has read from the program's pipe");
  CHECK(said("one use only from here on", "") == 1, "%d lines say that nothing is told any more", said("one use only from here on", ""));
  unlink(log_file);
}

/* As in a container: the call is refused with this errno. */
static void refuse(int err) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    FAULT("no filter: %s", strerror(errno));
}

static int refused_by;

static void refused_body(void) {
  refuse(refused_by);
  ncclComm_t c = comm_of(0, 1, 0);
  for (int k = 0; k < 3; k++) {
    void* h = NULL;
    char* p = map_at(NULL, SIZE);
    MUST(c, ncclCommRegister(c, p, SIZE, &h));
    munmap(p, SIZE);
    MUST(c, ncclCommDeregister(c, h));
  }
  CHECK(readers() == 0, "%d threads and descriptors", readers());
  MUST(c, ncclCommDestroy(c));
  const char* why = strerror(refused_by);
  CHECK(said("for one use only", why) == 1, "%d lines say why nothing is kept", said("for one use only", why));
  unlink(log_file);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "lazy")) return wanted_readers = 2, job_run(1, 60, lazy_body) != 0;
  if (!strcmp(what, "nothing_kept")) return setenv("HCCL_REG_CACHE_ENTRIES", "0", 1), job_run(1, 60, lazy_body) != 0;
  if (!strcmp(what, "closed")) return log_to_file("WARN"), job_run(1, 60, closed_body) != 0;
  if (!strcmp(what, "refused")) {
    int faults = 0;
    for (int k = 0; k < 2; k++) refused_by = k ? ENOSYS : EPERM, log_to_file("INFO"), faults += job_run(1, 60, refused_body);
    return faults != 0;
  }
  fprintf(stderr, "no case %s\n", what);
  return 2;
}
