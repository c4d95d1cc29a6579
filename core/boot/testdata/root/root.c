// A process that makes ids, for the tests: it does on stdin's commands what a host program does through the shim, without Go.
//   new            makes an id            -> hex of the id, or "error RESULT TEXT"
//   join HEX RANK  hccl_meet_join         -> "ok" or "error RESULT TEXT"
//   heir HEX       forks a child that joins under the id and stays until its stdin ends -> "ok"
//   idle HEX       forks a child that never joins and stays                            -> "ok"
//   child HEX      forks a child that makes an id of its own, joins under HEX and stays -> hex of its own id, "ok"
//   loaded         forks a child as if the core were loaded; how many sockets it has   -> "sockets N"
//   strangers      -> "strangers N"
//   threads        -> "threads N"
//   exit           exit(0)
// With ROOT_SLOW_START set, threads take long to start, and hold a lock meanwhile that forks do not know of.
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meet.h"

static int core_loaded;

// --- Threads that start slowly ---

// Like that of an allocator or a sanitizer: a child forked while it is held can start no thread.
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;

struct beginning {
  void* (*start)(void*);
  void* arg;
};

static void* begin_slowly(void* p) {
  struct beginning b = *(struct beginning*)p;
  free(p);
  pthread_mutex_lock(&host_lock);
  usleep(200000);
  pthread_mutex_unlock(&host_lock);
  return b.start(b.arg);
}

// Stands before libc's, and before a sanitizer's.
int pthread_create(pthread_t* t, const pthread_attr_t* attr, void* (*start)(void*), void* arg) {
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  if (!getenv("ROOT_SLOW_START")) return real(t, attr, start, arg);
  struct beginning* b = malloc(sizeof *b);
  *b = (struct beginning){start, arg};
  return real(t, attr, begin_slowly, b);
}

// --- Commands ---

static void child(void) {
  if (core_loaded) hccl_meet_core_loaded_child();
  else hccl_meet_fork_child();
}

static void unhex(const char* hex, unsigned char id[128]) {
  for (int k = 0; k < 128; k++) {
    unsigned v = 0;
    sscanf(hex + 2 * k, "%2x", &v);
    id[k] = (unsigned char)v;
  }
}

static void answer(int res, const char* err, const char* ok) {
  if (res) printf("error %d %s\n", res, err);
  else printf("%s\n", ok);
}

static void make_id(void) {
  unsigned char id[128];
  char err[512], hex[257];
  int res = hccl_meet_new_id(id, err, sizeof err);
  for (int k = 0; k < 128 && !res; k++) sprintf(hex + 2 * k, "%02x", id[k]);
  answer(res, err, hex);
}

static void join(const char* hex, int rank, const char* ok) {
  unsigned char id[128];
  char err[512];
  unhex(hex, id);
  answer(hccl_meet_join(id, rank, err, sizeof err), err, ok);
}

static int sockets(void) {
  int n = 0;
  DIR* d = opendir("/proc/self/fd");
  for (struct dirent* e; d && (e = readdir(d));) {
    struct stat st;
    if (fstat(atoi(e->d_name), &st) == 0 && S_ISSOCK(st.st_mode)) n++;
  }
  if (d) closedir(d);
  return n;
}

// A child goes when the pipe that only the test holds open ends.
static void stay_here(const char* hex) {
  if (hex) join(hex, 1, "ok");
  else printf("ok\n");
  fflush(stdout);
  char c;
  while (read(3, &c, 1) > 0) {}
  _exit(0);
}

static void stay(const char* hex) {
  if (fork() == 0) stay_here(hex);
}

static void child_with_id(const char* hex) {
  if (fork() != 0) return;
  make_id();
  stay_here(hex);
}

static int threads(void) {
  int n = 0;
  DIR* d = opendir("/proc/self/task");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n - 2;
}

int main(void) {
  char line[512], hex[300];
  int rank;
  pthread_atfork(hccl_meet_fork_prepare, hccl_meet_fork_parent, child);
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "new", 3)) make_id();
    else if (sscanf(line, "join %256s %d", hex, &rank) == 2) join(hex, rank, "ok");
    else if (sscanf(line, "heir %256s", hex) == 1) stay(hex);
    else if (sscanf(line, "idle %256s", hex) == 1) stay(NULL);
    else if (sscanf(line, "child %256s", hex) == 1) child_with_id(hex);
    else if (!strncmp(line, "loaded", 6)) {
      core_loaded = 1;
      pid_t pid = fork();
      if (pid == 0) {
        printf("sockets %d\n", sockets());
        fflush(stdout);
        _exit(0);
      }
      waitpid(pid, NULL, 0);
      core_loaded = 0;
    } else if (!strncmp(line, "strangers", 9)) printf("strangers %llu\n", hccl_meet_strangers());
    else if (!strncmp(line, "threads", 7)) printf("threads %d\n", threads());
    else if (!strncmp(line, "exit", 4)) exit(0);
    fflush(stdout);
  }
  return 0;
}
