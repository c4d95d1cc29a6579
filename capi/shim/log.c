#include "log.h"
#include "../../internal/params/source.h"
#include "../../internal/params/stamp.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1400, PATH = 1024 };

// Settings are read at each line: lines are rare, and a program may set NCCL_DEBUG after loading us. What is no level is WARN, as in
// the core, which says so.
static int wanted(void) {
  static const char* const silent[] = {"", "NONE", "VERSION"};
  const char* level = hccl_setting("NCCL_DEBUG");
  for (size_t k = 0; level != NULL && k < sizeof silent / sizeof *silent; k++)
    if (strcasecmp(level, silent[k]) == 0) return 0;
  return level != NULL;
}

static const char* host(char* name, size_t size) {
  if (gethostname(name, size) != 0) return "?";
  name[size - 1] = 0;
  return name;
}

// expand writes pattern with %h and %p replaced by the host's name and the process's number, and %% by %.
static void expand(char* out, size_t size, const char* pattern) {
  char name[256];
  size_t n = 0;
  for (const char* p = pattern; *p && n + 1 < size; p++) {
    int m = -1;
    if (p[0] == '%' && p[1] == 'h') m = snprintf(out + n, size - n, "%s", host(name, sizeof name));
    if (p[0] == '%' && p[1] == 'p') m = snprintf(out + n, size - n, "%d", (int)getpid());
    if (p[0] == '%' && p[1] == '%') m = snprintf(out + n, size - n, "%%");
    if (m >= 0) p++;
    else out[n] = *p, m = 1;
    n += (size_t)m;
  }
  out[n < size ? n : size - 1] = 0;
}

static int open_file(void) {
  const char* pattern = hccl_setting("NCCL_DEBUG_FILE");
  char path[PATH];
  int fd;
  if (pattern == NULL || *pattern == 0) return -1;
  expand(path, sizeof path, pattern);
  do fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  while (fd < 0 && errno == EINTR);
  return fd;
}

// put writes a line at once. The host's stderr may be a pipe that nobody reads: the SIGPIPE of that write goes to this thread,
// where it is blocked and taken away, so that the host never sees it.
static void put(int fd, const char* line, size_t n) {
  sigset_t pipe_only, before, waiting;
  struct timespec zero = {0, 0};
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigpending(&waiting);
  int was_waiting = sigismember(&waiting, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  ssize_t w;
  do w = write(fd, line, n);
  while (w < 0 && errno == EINTR);
  if (w < 0 && errno == EPIPE && !was_waiting)
    while (sigtimedwait(&pipe_only, NULL, &zero) < 0 && errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hccl_say(const char* line, size_t n) { put(STDERR_FILENO, line, n); }

static size_t stamp(char* out, size_t size) {
  if (!hccl_stamp_wanted(hccl_setting("NCCL_DEBUG_TIMESTAMP_LEVELS"), "WARN")) return 0;
  return hccl_stamp(out, size, hccl_setting("NCCL_DEBUG_TIMESTAMP_FORMAT"));
}

void hccl_warn(const char* format, ...) {
  if (!wanted()) return;
  int kept = errno;
  char line[LINE], name[256];
  int n = (int)stamp(line, LINE / 2);
  n += snprintf(line + n, sizeof line - (size_t)n, "%s:%d:%ld HCCL WARN ", host(name, sizeof name), (int)getpid(), syscall(SYS_gettid));
  va_list args;
  va_start(args, format);
  n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
  va_end(args);
  if (n > LINE - 2) n = LINE - 2;
  for (char* p = line; p < line + n; p++)
    if ((unsigned char)*p < ' ' || *p == 127) *p = '?'; // names come from the environment and from users
  line[n++] = '\n';
  int fd = open_file();
  put(fd < 0 ? STDERR_FILENO : fd, line, (size_t)n);
  if (fd >= 0) close(fd);
  errno = kept;
}
