#include "source.h"
#include "source_file.h"
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

// What was read, and the environment that named the files. Immutable once published, and kept for those who still read it.
struct files {
  struct files* before; // what other values of these variables have named
  char *conf, *home; // values of NCCL_CONF_FILE and HOME then, NULL: not set
  struct hccl_settings_file* file[2];
};

static struct files* newest; // atomic

static int same(const char* a, const char* b) { return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0); }

static char* copy(const char* s) { return s != NULL ? strdup(s) : NULL; }

static struct hccl_settings_file* read_in_home(const char* home) {
  char room[4096], path[4096];
  struct passwd user, *found = NULL;
  if ((home == NULL || *home == 0) && getpwuid_r(getuid(), &user, room, sizeof room, &found) == 0 && found != NULL)
    home = user.pw_dir;
  if (home == NULL || *home == 0) return NULL;
  int n = snprintf(path, sizeof path, "%s/.nccl.conf", home);
  return n > 0 && (size_t)n < sizeof path ? hccl_settings_read(path, 1) : NULL;
}

static struct files* read_files(const char* conf, const char* home) {
  struct files* f = calloc(1, sizeof *f);
  if (f == NULL) return NULL;
  f->conf = copy(conf);
  f->home = copy(home);
  f->file[0] = conf != NULL && *conf != 0 ? hccl_settings_read(conf, 0) : read_in_home(home);
  f->file[1] = hccl_settings_read("/etc/nccl.conf", 1);
  return f;
}

static struct files* find_files(struct files* f, const char* conf, const char* home) {
  while (f != NULL && !(same(f->conf, conf) && same(f->home, home))) f = f->before;
  return f;
}

// now returns the files that count; NULL without memory. Threads that read them at once may each put theirs into the list.
static const struct files* now(void) {
  const char *conf = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
  struct files* head = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
  struct files* f = find_files(head, conf, home);
  if (f != NULL) return f;
  f = read_files(conf, home);
  if (f == NULL) return NULL;
  f->before = head;
  while (!__atomic_compare_exchange_n(&newest, &f->before, f, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
  return f;
}

const struct hccl_settings_file* hccl_settings_file(int k) {
  const struct files* f = now();
  return f != NULL ? f->file[k] : NULL;
}

int hccl_setting_find(const char* name, struct hccl_setting* out) {
  out->name = name;
  out->file = NULL;
  out->line = 0;
  out->value = getenv(name);
  if (out->value != NULL) return 1;
  const struct files* f = now();
  for (int k = 0; f != NULL && k < 2; k++)
    for (size_t i = 0; hccl_settings_line(f->file[k], i, out); i++)
      if (strcmp(out->name, name) == 0) return 1;
  return 0;
}

const char* hccl_setting(const char* name) {
  struct hccl_setting s;
  return hccl_setting_find(name, &s) ? s.value : NULL;
}

size_t hccl_settings_names(char* out, size_t size) {
  size_t need = 0;
  for (char** e = environ; e != NULL && *e != NULL; e++) {
    if (strncmp(*e, "NCCL_", 5) != 0 && strncmp(*e, "HCCL_", 5) != 0) continue;
    size_t n = strcspn(*e, "=\n");
    if (need + n + 1 <= size) {
      memcpy(out + need, *e, n);
      out[need + n] = '\n';
    }
    need += n + 1;
  }
  return need;
}
