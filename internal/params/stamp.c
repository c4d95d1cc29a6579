#include "stamp.h"
#include <string.h>
#include <strings.h>
#include <time.h>

enum { FORMAT = 256 };

// fraction writes the first digits of a second's nanoseconds.
static size_t fraction(char* out, int digits, long nanoseconds) {
  for (int k = 9; k > digits; k--) nanoseconds /= 10;
  for (int k = digits; k-- > 0; nanoseconds /= 10) out[k] = (char)('0' + nanoseconds % 10);
  return (size_t)digits;
}

// plain leaves strftime's own signs in the format. A format that is too long is cut between two signs.
static void plain(char* out, const char* format, long nanoseconds) {
  size_t n = 0;
  for (const char* p = format; *p && n + 16 < FORMAT; p++) {
    if (p[0] == '%' && p[1] >= '1' && p[1] <= '9' && p[2] == 'f') {
      n += fraction(out + n, p[1] - '0', nanoseconds);
      p += 2;
    } else if (p[0] == '%' && p[1] != 0) { // %% and %_d stay as they are
      out[n++] = *p++;
      out[n++] = *p;
    } else {
      out[n++] = *p == '_' ? ' ' : *p;
    }
  }
  out[n] = 0;
}

size_t hccl_stamp(char* out, size_t size, const char* format) {
  char form[FORMAT];
  struct timespec now;
  struct tm local;
  if (size == 0) return 0;
  out[0] = 0;
  clock_gettime(CLOCK_REALTIME, &now);
  if (localtime_r(&now.tv_sec, &local) == NULL) return 0;
  plain(form, format != NULL ? format : HCCL_STAMP_FORMAT, now.tv_nsec);
  size_t n = form[0] != 0 ? strftime(out, size, form, &local) : 0;
  out[n] = 0; // what strftime leaves where there is no room is not defined
  return n;
}

static int listed(const char* list, const char* level) {
  while (*list) {
    list += strspn(list, ", \t");
    size_t n = strcspn(list, ", \t");
    if ((n == strlen(level) && strncasecmp(list, level, n) == 0) || (n == 3 && strncasecmp(list, "ALL", n) == 0)) return 1;
    list += n;
  }
  return 0;
}

int hccl_stamp_wanted(const char* levels, const char* level) {
  if (levels == NULL) return strcmp(level, "WARN") == 0;
  return *levels == '^' ? !listed(levels + 1, level) : listed(levels, level);
}
