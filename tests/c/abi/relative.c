/* Loaded by a relative path, used from another folder. argument: the folder of the library. */
#include "test.h"

int main(int argc, char** argv) {
  typedef ncclResult_t (*alloc_t)(void**, size_t);
  typedef ncclResult_t (*release_t)(void*);
  union { void* p; alloc_t f; } alloc;
  union { void* p; release_t f; } release;
  if (argc < 2 || chdir(argv[1]) != 0 || setenv("LD_LIBRARY_PATH", "", 1) != 0) return 2;
  void* lib = dlopen("./libcopy.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(lib != NULL, "%s", dlerror());
  if (lib == NULL || chdir("/") != 0) return 1;
  void* p = NULL;
  alloc.p = dlsym(lib, "ncclMemAlloc");
  release.p = dlsym(lib, "ncclMemFree");
  CHECK(alloc.f(&p, 8) == ncclSuccess && p != NULL, "the core was not found after the folder was changed");
  CHECK(dlclose(lib) == 0, "dlclose");
  CHECK(release.f(p) == ncclSuccess, "the memory is not given back");
  p = NULL;
  CHECK(alloc.f(&p, 8) == ncclSuccess && p != NULL, "the library is gone after dlclose");
  CHECK(release.f(p) == ncclSuccess, "the memory is not given back");
  return test_end();
}
