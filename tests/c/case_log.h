/* The library's log as a file that the case reads. */
#ifndef CASE_LOG_H
#define CASE_LOG_H
#include "case_ops.h"

static char log_file[64];

static inline void log_to_file(const char* level) {
  snprintf(log_file, sizeof log_file, "/tmp/case_log.%d", (int)getpid());
  unlink(log_file);
  setenv("NCCL_DEBUG", level, 1);
  setenv("NCCL_DEBUG_FILE", log_file, 1);
}

/* How many lines of the log hold both texts. */
static inline int said(const char* a, const char* b) {
  char line[1024];
  int n = 0;
  FILE* f = fopen(log_file, "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) n += strcasestr(line, a) != NULL && strcasestr(line, b) != NULL;
  if (f != NULL) fclose(f);
  return n;
}

/* The same once there are as many lines as are wanted: the library tells by a thread of its own. */
static inline int said_soon(int wanted, const char* a, const char* b) {
  for (double end = now() + 20; said(a, b) < wanted && now() < end;) sleep_for(0.001);
  return said(a, b);
}

static inline void* map_at(void* p, size_t n) {
  return mmap(p, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (p != NULL ? MAP_FIXED : 0), -1, 0);
}

#endif
