// For each line "KEY STEP DATA" (hex, "-" for none): the HMAC-SHA256 of DATA under KEY and the SHA-256 of DATA, fed in pieces of
// STEP bytes.
#include <stdio.h>
#include <string.h>

#include "sha256.h"

static size_t unhex(const char* hex, unsigned char* out) {
  size_t n = hex[0] == '-' ? 0 : strlen(hex) / 2;
  for (size_t k = 0; k < n; k++) {
    unsigned v = 0;
    sscanf(hex + 2 * k, "%2x", &v);
    out[k] = (unsigned char)v;
  }
  return n;
}

static void print(const unsigned char* digest, const char* end) {
  for (int k = 0; k < HCCL_SHA256_SIZE; k++) printf("%02x", digest[k]);
  printf("%s", end);
}

int main(void) {
  static char keyhex[8193], datahex[32769];
  static unsigned char key[4096], data[16384], out[HCCL_SHA256_SIZE];
  size_t step;
  while (scanf("%8192s %zu %32768s", keyhex, &step, datahex) == 3) {
    size_t keylen = unhex(keyhex, key), n = unhex(datahex, data);
    struct hccl_hmac m;
    struct hccl_sha256 s;
    hccl_hmac_init(&m, key, keylen);
    hccl_sha256_init(&s);
    for (size_t k = 0; k < n; k += step) {
      size_t part = n - k < step ? n - k : step;
      hccl_hmac_add(&m, data + k, part);
      hccl_sha256_add(&s, data + k, part);
    }
    hccl_hmac_end(&m, out);
    print(out, " ");
    hccl_sha256_end(&s, out);
    print(out, "\n");
  }
  return 0;
}
