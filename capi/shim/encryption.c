// The pre-shared key that a program gives by ncclSetEncryption. It waits here for the core, which is not loaded for it: programs may
// call this before they fork their ranks. The core takes it when the first communicator of several ranks begins.
#include "encryption.h"
#include "core.h"
#include "error.h"
#include "versioned.h"
#include <string.h>

enum { LEAST = 32, MOST = 4096 }; // bytes; NCCL asks for as many

static const struct hccl_member members[] = {
  {"mode", offsetof(ncclEncryptionConfig_t, mode), 23200, NCCL_ENCRYPTION_MODE_NONE, NCCL_ENCRYPTION_MODE_PSK},
  {"psk", offsetof(ncclEncryptionConfig_t, psk), 23200, 1, 0},
};

static const struct hccl_layout layout = {"ncclEncryptionConfig_t",
                                          sizeof(ncclEncryptionConfig_t),
                                          sizeof(ncclEncryptionConfig_t),
                                          NCCL_API_MAGIC,
                                          sizeof members / sizeof *members,
                                          members};

// Guarded by hccl_core_lock, which forks take.
static char key[MOST];
static size_t length; // 0: none
static int taken;     // the core has asked for it

// wipe overwrites what the compiler would take for dead.
static void wipe(void) {
  for (volatile char* p = key; p < key + sizeof key; p++) *p = 0;
}

size_t hccl_take_key(unsigned char* out, size_t room) {
  hccl_core_lock();
  taken = 1;
  size_t n = length <= room ? length : 0;
  memcpy(out, key, n);
  hccl_core_unlock();
  return n;
}

// keep reports whether the key may still be given, or is the one that was.
static int keep(const char* psk, size_t n) {
  hccl_core_lock();
  int same = n == length && memcmp(psk, key, n) == 0, may = !taken;
  if (may && !same) {
    wipe();
    memcpy(key, psk, n);
    length = n;
  }
  hccl_core_unlock();
  return may || same;
}

HCCL_API(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t* config)) {
  static const char who[] = "ncclSetEncryption";
  const char* psk = "";
  ncclResult_t e = config != NULL ? hccl_check_struct(config, &layout, NULL, who) : ncclSuccess;
  if (e != ncclSuccess) return e;
  if (config != NULL && config->mode == NCCL_ENCRYPTION_MODE_PSK) {
    if (config->psk == NULL) return hccl_fail(NULL, ncclInvalidArgument, "%s: mode is NCCL_ENCRYPTION_MODE_PSK, and psk is NULL", who);
    psk = config->psk;
    size_t n = strnlen(psk, MOST + 1);
    if (n < LEAST || n > MOST)
      return hccl_fail(NULL, ncclInvalidArgument, "%s: psk has %s %d bytes: it needs %d to %d", who, n < LEAST ? "less than" : "more than",
                       n < LEAST ? LEAST : MOST, LEAST, MOST);
  }
  if (keep(psk, strlen(psk))) return ncclSuccess;
  return hccl_fail(NULL, ncclInvalidUsage,
                   "%s: a communicator was begun in this process with another key, or none, which counts for all its connections: "
                   "call this before the first communicator, and give the same key then", who);
}
