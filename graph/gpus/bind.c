#include "bind.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

// The names one behind the other, in the order of the slots.
static const char names[] =
#define X(name) #name "\0"
#include "names.h"
#undef X
    ;

extern __attribute__((visibility("hidden"))) void* hccl_nvml_slots[];

enum { FUNCTION_NOT_FOUND = 13 };  // as in nvmlReturn_t

// What stands for functions that this version of NVML does not have. All but one return an nvmlReturn_t.
static int absent(void) { return FUNCTION_NOT_FOUND; }
static const char* absent_text(void) { return "this NVML has no texts"; }

const char* hccl_nvml_bind(const char* library) {
  void* nvml = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (nvml == NULL) return dlerror();
  size_t slot = 0;
  for (const char* name = names; *name != '\0'; name += strlen(name) + 1) {
    void* f = dlsym(nvml, name);
    if (f == NULL) f = strcmp(name, "nvmlErrorString") == 0 ? (void*)absent_text : (void*)absent;
    hccl_nvml_slots[slot++] = f;
  }
  return NULL;  // nvml stays open: the slots lead into it
}
