// Settings files. A line is NAME=value, with blanks around both as one likes, or a comment that begins with #, or empty. A value may
// stand in single or double quotes, which keep blanks at its ends; behind it, after a blank, a comment may stand. Lines may end as on
// Windows. NCCL's files are read alike, except that NCCL takes blanks, quotes and comments behind a value for part of it.
//
// A line that is none of this is a fault with its number; the others count.
#include "source_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fault(struct hccl_settings_file* f, const char* format, ...) {
  char text[1024];
  va_list args;
  if (f->nfaults == HCCL_FILE_FAULTS) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  f->faults[f->nfaults] = strdup(text);
  if (f->faults[f->nfaults] != NULL) f->nfaults++;
}

static int blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static char* trim(char* s) {
  while (blank(*s)) s++;
  size_t n = strlen(s);
  while (n > 0 && blank(s[n - 1])) n--;
  s[n] = 0;
  return s;
}

static int is_name(const char* s) {
  if (*s == 0 || (*s >= '0' && *s <= '9')) return 0;
  for (; *s; s++)
    if (!(*s >= 'A' && *s <= 'Z') && !(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && *s != '_') return 0;
  return 1;
}

// value takes quotes and a comment away. It returns what is wrong, or NULL.
static const char* value(char* s, const char** out) {
  if (*s == '"' || *s == '\'') {
    char* end = strchr(s + 1, *s);
    if (end == NULL) return "a quote is not closed";
    char* rest = trim(end + 1);
    if (*rest != 0 && *rest != '#') return "something stands behind the closing quote";
    *end = 0;
    *out = s + 1;
    return NULL;
  }
  for (char* p = s; *p; p++)
    if (*p == '#' && (p == s || blank(p[-1]))) {
      *p = 0;
      break;
    }
  *out = trim(s);
  return NULL;
}

// parse reads one line. It returns what is wrong, or NULL; a comment and an empty line leave out->name NULL.
static const char* parse(char* s, struct hccl_setting* out) {
  s = trim(s);
  out->name = NULL;
  if (*s == 0 || *s == '#') return NULL;
  char* sign = strchr(s, '=');
  if (sign == NULL) return "there is no = in it";
  *sign = 0;
  char* name = trim(s);
  if (!is_name(name)) return "what stands before = is no name";
  const char* wrong = value(trim(sign + 1), &out->value);
  if (wrong == NULL) out->name = name;
  return wrong;
}

static const struct hccl_setting* earlier(const struct hccl_settings_file* f, const char* name) {
  for (size_t k = 0; k < f->nlines; k++)
    if (strcmp(f->lines[k].name, name) == 0) return &f->lines[k];
  return NULL;
}

static void keep(struct hccl_settings_file* f, const struct hccl_setting* s) {
  const struct hccl_setting* first = earlier(f, s->name);
  if (first != NULL) {
    fault(f, "%s:%d: %s stands in line %d already, which counts; take one of them out", f->path, s->line, s->name, first->line);
    return;
  }
  if (f->nlines == f->room) {
    size_t room = f->room ? 2 * f->room : 16;
    struct hccl_setting* more = realloc(f->lines, room * sizeof *more);
    if (more == NULL) return;
    f->lines = more;
    f->room = room;
  }
  f->lines[f->nlines++] = *s;
}

// split goes through the lines of text, of n bytes with a zero behind them.
static void split(struct hccl_settings_file* f, char* text, size_t n) {
  char* end = text + n;
  if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; // a byte order mark, as editors on Windows write it
  for (int line = 1; text < end; line++) {
    char* next = memchr(text, '\n', (size_t)(end - text));
    if (next == NULL) next = end;
    *next = 0;
    struct hccl_setting s = {.file = f->path, .line = line};
    const char* wrong = strlen(text) < (size_t)(next - text) ? "there is a zero byte in it" : parse(text, &s);
    if (wrong != NULL) fault(f, "%s:%d: this line is not used: %s; write NAME=value", f->path, line, wrong);
    else if (s.name != NULL) keep(f, &s);
    text = next + 1;
  }
}

static int open_file(const char* path) {
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); // a pipe without a writer must not hold us up
  while (fd < 0 && errno == EINTR);
  return fd;
}

// read_all reads a file of at most HCCL_FILE_SIZE bytes into memory with room for a zero. It returns how many came, or -1 with errno;
// fstat would say more beforehand, but is a function of newer C libraries only.
static ssize_t read_all(int fd, char** text) {
  size_t n = 0, room = 0;
  if (lseek(fd, 0, SEEK_CUR) < 0) return -1; // a pipe or a terminal: ESPIPE
  for (;;) {
    if (n == room) {
      if (room > HCCL_FILE_SIZE) return errno = EFBIG, -1;
      room = room != 0 ? 4 * room : 16 << 10;
      char* more = realloc(*text, room + 1);
      if (more == NULL) return -1;
      *text = more;
    }
    ssize_t got = read(fd, *text + n, room - n);
    if (got == 0) return (ssize_t)n;
    if (got < 0 && errno != EINTR) return -1;
    if (got > 0) n += (size_t)got;
  }
}

static void fill(struct hccl_settings_file* f, int fd) {
  ssize_t n = read_all(fd, &f->text);
  if (n >= 0) {
    f->text[n] = 0;
    split(f, f->text, (size_t)n);
  } else if (errno == EISDIR || errno == ESPIPE) {
    fault(f, "%s cannot be read for settings: it is no file", f->path);
  } else {
    fault(f, "%s cannot be read for settings: %s", f->path, strerror(errno));
  }
}

struct hccl_settings_file* hccl_settings_read(const char* path, int may_be_missing) {
  int kept = errno, fd = open_file(path);
  if (fd < 0 && may_be_missing && (errno == ENOENT || errno == ENOTDIR)) {
    errno = kept;
    return NULL;
  }
  int why = errno;
  struct hccl_settings_file* f = calloc(1, sizeof *f);
  if (f != NULL && (f->path = strdup(path)) != NULL) {
    if (fd >= 0) fill(f, fd);
    else fault(f, "%s cannot be read for settings: %s", path, strerror(why));
  } else {
    free(f);
    f = NULL;
  }
  if (fd >= 0) close(fd);
  errno = kept;
  return f;
}

void hccl_settings_free(struct hccl_settings_file* f) {
  if (f == NULL) return;
  for (size_t k = 0; k < f->nfaults; k++) free(f->faults[k]);
  free(f->lines);
  free(f->text);
  free(f->path);
  free(f);
}

int hccl_settings_line(const struct hccl_settings_file* f, size_t k, struct hccl_setting* out) {
  if (f == NULL || k >= f->nlines) return 0;
  *out = f->lines[k];
  return 1;
}

const char* hccl_settings_fault(const struct hccl_settings_file* f, size_t k) {
  return f != NULL && k < f->nfaults ? f->faults[k] : NULL;
}
