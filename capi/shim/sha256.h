// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for the proofs of the roll call: a few dozen blocks per rank, so plain C is enough.
// Used by meet*.c only; the core has Go's own implementation, and a test compares the two.
#ifndef HCCL_SHA256_H
#define HCCL_SHA256_H
#include <stddef.h>
#include <stdint.h>

enum { HCCL_SHA256_SIZE = 32 };

struct hccl_sha256 {
  uint32_t h[8];
  uint64_t length; // bytes taken so far
  unsigned char block[64];
};

void hccl_sha256_init(struct hccl_sha256* s);
void hccl_sha256_add(struct hccl_sha256* s, const void* data, size_t n);
void hccl_sha256_end(struct hccl_sha256* s, unsigned char out[HCCL_SHA256_SIZE]);

struct hccl_hmac {
  struct hccl_sha256 inner, outer;
};

void hccl_hmac_init(struct hccl_hmac* m, const void* key, size_t n);
void hccl_hmac_add(struct hccl_hmac* m, const void* data, size_t n);
void hccl_hmac_end(struct hccl_hmac* m, unsigned char out[HCCL_SHA256_SIZE]);

// Compares in a time that does not depend on where the two differ.
int hccl_mac_equal(const unsigned char* a, const unsigned char* b);
#endif
