/* Inputs, references and checked operations that the cases share. Element i of rank r is (r+1) + (i mod 17): sums over up to 64
   ranks are exact in float32, so that results are compared element by element. */
#ifndef CASE_OPS_H
#define CASE_OPS_H
#include "case.h"

static inline float value(int r, size_t i) { return (float)(r + 1) + (float)(i % 17); }
static inline float total(int n, size_t i) { return (float)(n * (n + 1) / 2) + (float)n * (float)(i % 17); }

static inline float* floats(size_t n) {
  float* p = (float*)malloc(n * sizeof(float) + 64);
  if (p == NULL) FAULT("no memory for %zu floats", n);
  return p;
}
static inline void fill(float* p, int r, size_t from, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = value(r, from + i);
}
static inline void blank(float* p, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = -7;
}

/* Compares p[0..n) with rank r's elements from `from`; r < 0: with the sum over -r ranks. */
static inline void same(const char* what, const float* p, int r, size_t from, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float want = r < 0 ? total(-r, from + i) : value(r, from + i);
    if (p[i] != want) {
      FAULT("%s of %zu: element %zu is %g, not %g", what, n, i, (double)p[i], (double)want);
      return;
    }
  }
}

/* A checked all-reduce. */
static inline ncclResult_t sum_checked(ncclComm_t c, size_t count) {
  int n = 0, r = 0;
  float *s = floats(count), *d = floats(count);
  ncclCommCount(c, &n), ncclCommUserRank(c, &r);
  fill(s, r, 0, count), blank(d, count);
  ncclResult_t got = ncclAllReduce(s, d, count, ncclFloat32, ncclSum, c, NULL);
  if (got == ncclSuccess) same("all-reduce", d, -n, 0, count);
  free(s), free(d);
  return got;
}

enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, SEND_RECV, OPS };
static const char* const op_name[OPS] = {"all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all",
                                         "gather", "scatter", "send and recv"};

static inline ncclResult_t ring_messages(const float* s, float* d, size_t count, int n, int r, ncclComm_t c) {
  ncclResult_t got = ncclGroupStart();
  if (got == ncclSuccess) got = ncclSend(s, count, ncclFloat32, (r + 1) % n, c, NULL);
  if (got == ncclSuccess) got = ncclRecv(d, count, ncclFloat32, (r + n - 1) % n, c, NULL);
  ncclResult_t end = ncclGroupEnd();
  return got != ncclSuccess ? got : end;
}

/* Calls one operation of float32. s and d hold n*count elements. */
static inline ncclResult_t op_call(int op, const float* s, float* d, size_t count, int root, int n, int r, ncclComm_t c) {
  switch (op) {
    case ALL_REDUCE: return ncclAllReduce(s, d, count, ncclFloat32, ncclSum, c, NULL);
    case REDUCE: return ncclReduce(s, d, count, ncclFloat32, ncclSum, root, c, NULL);
    case BROADCAST: return ncclBroadcast(s, d, count, ncclFloat32, root, c, NULL);
    case ALL_GATHER: return ncclAllGather(s, d, count, ncclFloat32, c, NULL);
    case REDUCE_SCATTER: return ncclReduceScatter(s, d, count, ncclFloat32, ncclSum, c, NULL);
    case ALL_TO_ALL: return ncclAlltoAll(s, d, count, ncclFloat32, c, NULL);
    case GATHER: return ncclGather(s, d, count, ncclFloat32, root, c, NULL);
    case SCATTER: return ncclScatter(s, d, count, ncclFloat32, root, c, NULL);
    default: return ring_messages(s, d, count, n, r, c);
  }
}

/* Element i of rank r's send buffer is value(r, i) for i < n*count. */
static inline void op_verify(int op, const float* d, size_t count, int root, int n, int r) {
  const char* what = op_name[op];
  switch (op) {
    case ALL_REDUCE: same(what, d, -n, 0, count); break;
    case REDUCE: if (r == root) same(what, d, -n, 0, count); break;
    case BROADCAST: same(what, d, root, 0, count); break;
    case ALL_GATHER:
      for (int k = 0; k < n; k++) same(what, d + (size_t)k * count, k, 0, count);
      break;
    case REDUCE_SCATTER: same(what, d, -n, (size_t)r * count, count); break;
    case ALL_TO_ALL:
      for (int k = 0; k < n; k++) same(what, d + (size_t)k * count, k, (size_t)r * count, count);
      break;
    case GATHER:
      for (int k = 0; k < n && r == root; k++) same(what, d + (size_t)k * count, k, 0, count);
      break;
    case SCATTER: same(what, d, root, (size_t)r * count, count); break;
    default: same(what, d, (r + n - 1) % n, 0, count);
  }
}

/* One operation with fresh buffers, checked. */
static inline ncclResult_t op_checked(int op, ncclComm_t c, size_t count, int root) {
  int n = 0, r = 0;
  ncclCommCount(c, &n), ncclCommUserRank(c, &r);
  size_t all = (size_t)n * count;
  float *s = floats(all), *d = floats(all);
  fill(s, r, 0, all), blank(d, all);
  ncclResult_t got = op_call(op, s, d, count, root, n, r, c);
  if (got == ncclSuccess) op_verify(op, d, count, root, n, r);
  free(s), free(d);
  return got;
}

/* Every operation once, at count elements. */
static inline void ops_checked(ncclComm_t c, size_t count) {
  int n = 0;
  ncclCommCount(c, &n);
  for (int op = 0; op < OPS; op++) {
    NOTE("%s of %zu", op_name[op], count);
    MUST(c, op_checked(op, c, count, (int)(count % (size_t)n)));
  }
}

static inline int descriptors(void) {
  int n = 0;
  DIR* d = opendir("/proc/self/fd");
  while (d != NULL && readdir(d) != NULL) n++;
  if (d != NULL) closedir(d);
  return n;
}
static inline int threads(void) {
  int n = 0;
  DIR* d = opendir("/proc/self/task");
  while (d != NULL && readdir(d) != NULL) n++;
  if (d != NULL) closedir(d);
  return n - 2;
}
/* A number of kilobytes, or of threads, from a file of /proc/self. */
static inline long proc_number(const char* file, const char* name) {
  char line[200];
  long n = -1;
  FILE* f = fopen(file, "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) n = strtol(line + strlen(name) + 1, NULL, 10);
  }
  if (f != NULL) fclose(f);
  return n;
}
static inline double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- how long ranks take on a machine that others work on as well ---- */

/* Seconds that processors have done nothing: all ("cpu ") or one ("cpu0 "). */
static inline double idle_seconds(const char* which) {
  char line[512];
  unsigned long idle = 0, waits = 0;
  FILE* f = fopen("/proc/stat", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (!strncmp(line, which, strlen(which))) sscanf(line + strlen(which), "%*u %*u %*u %lu %lu", &idle, &waits);
  }
  if (f != NULL) fclose(f);
  return (double)(idle + waits) / (double)sysconf(_SC_CLK_TCK);
}

struct span { const char* which; double idle, own; };

static inline struct span span_begin(const char* which) {
  meet();
  struct span s = {which, idle_seconds(which), cpu_seconds()};
  return s;
}
/* The time since then in which processors worked for the ranks, or for nobody: all of it where nothing else runs. All ranks call both. */
static inline double span_end(struct span s) {
  job->word[me][0] = (long)((cpu_seconds() - s.own) * 1e6);
  meet();
  double all = idle_seconds(s.which) - s.idle;
  for (int r = 0; r < ranks; r++) all += (double)job->word[r][0] / 1e6;
  meet(); /* before the words are used again */
  return all / (strcmp(s.which, "cpu ") ? 1 : (double)sysconf(_SC_NPROCESSORS_ONLN));
}
#endif
