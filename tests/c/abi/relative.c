/* Loaded by a relative path, used from another folder. argument: the folder of the library. */
#include "test.h"

int main(int argc, char** argv) {
  typedef ncclResult_t (*alloc_t)(void**, size_t);
  union { void* p; alloc_t f; } alloc;
  if (argc < 2 || chdir(argv[1]) != 0 || setenv("LD_LIBRARY_PATH", "", 1) != 0) return 2;
  void* lib = dlopen("./libcopy.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(lib != NULL, "%s", dlerror());
  if (lib == NULL || chdir("/") != 0) return 1;
  void* p = NULL;
  alloc.p = dlsym(lib, "ncclMemAlloc");
  CHECK(alloc.f(&p, 8) == ncclSuccess && p != NULL, "the core was not found after the folder was changed");
  CHECK(dlclose(lib) == 0, "dlclose");
  p = NULL;
  CHECK(alloc.f(&p, 8) == ncclSuccess && p != NULL, "the library is gone after dlclose");
  return test_end();
}
