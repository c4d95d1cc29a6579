#include "hide.h"
#include <stddef.h>
#include <string.h>

static char** entries; // behind argv: the process's first environment

// glibc hands argc, argv and envp to constructors. Another C library may not; then nothing is hidden.
__attribute__((constructor)) static void keep_entries(int argc, char** argv) {
#ifdef __GLIBC__
  if (argv != NULL) entries = argv + argc + 1;
#else
  (void)argc, (void)argv, (void)entries;
#endif
}

static int for_go(const char* entry) {
  static const char* const names[] = {"GODEBUG=", "GOMAXPROCS=", "GOGC=", "GOMEMLIMIT=", "GOTRACEBACK="};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strncmp(entry, names[k], strlen(names[k])) == 0) return 1;
  return 0;
}

// Each hidden entry has a dummy of its own, by which it is found again: another thread may have moved entries meanwhile.
static char dummies[HCCL_HIDDEN][8];

void hccl_hide_environment(struct hccl_hidden* h) {
  h->count = 0;
  for (char** p = entries; p != NULL && *p != NULL && h->count < HCCL_HIDDEN; p++) {
    if (!for_go(*p)) continue;
    h->real[h->count] = *p;
    memcpy(dummies[h->count], "_HCCL=", 7);
    *p = dummies[h->count++];
  }
}

void hccl_show_environment(const struct hccl_hidden* h) {
  for (char** p = entries; h->count > 0 && *p != NULL; p++)
    for (int k = 0; k < h->count; k++)
      if (*p == dummies[k]) *p = h->real[k];
}
