#include "setting.h"

#include "../../../internal/params/source.h" // whose hccl_setting has another name in this package: see root.go
#include <stddef.h>

static const char* (*source)(const char* name);

void hccl_root_use(void* setting) {
  __atomic_store_n(&source, (const char* (*)(const char*))setting, __ATOMIC_RELEASE);
}

const char* hccl_setting(const char* name) {
  const char* (*f)(const char*) = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
  return f != NULL ? f(name) : NULL;
}
