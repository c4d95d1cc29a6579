// Prints the HMAC-SHA256 of stdin under the key in argv[1] (hex), fed in pieces of argv[2] bytes, and the SHA-256 of stdin.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"

int main(int argc, char** argv) {
  static unsigned char data[1 << 16], key[4096], out[HCCL_SHA256_SIZE];
  if (argc != 3) return 2;
  size_t n = fread(data, 1, sizeof data, stdin), keylen = strlen(argv[1]) / 2, step = (size_t)atoi(argv[2]);
  for (size_t k = 0; k < keylen; k++) {
    unsigned v;
    sscanf(argv[1] + 2 * k, "%2x", &v);
    key[k] = (unsigned char)v;
  }
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
  for (int k = 0; k < HCCL_SHA256_SIZE; k++) printf("%02x", out[k]);
  hccl_sha256_end(&s, out);
  printf(" ");
  for (int k = 0; k < HCCL_SHA256_SIZE; k++) printf("%02x", out[k]);
  printf("\n");
  return 0;
}
