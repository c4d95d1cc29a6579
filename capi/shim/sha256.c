#include "sha256.h"

#include <string.h>

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t load_be(const unsigned char* p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(unsigned char* p, uint32_t v) {
  for (int k = 0; k < 4; k++) p[k] = (unsigned char)(v >> (24 - 8 * k));
}

static void compress(uint32_t h[8], const unsigned char* block) {
  uint32_t w[64], v[8];
  for (int t = 0; t < 16; t++) w[t] = load_be(block + 4 * t);
  for (int t = 16; t < 64; t++) {
    uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  memcpy(v, h, sizeof v);
  for (int t = 0; t < 64; t++) {
    uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]), majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    uint32_t one = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) + choice + round_constant[t] + w[t];
    uint32_t two = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + majority;
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += one;
    v[0] = one + two;
  }
  for (int k = 0; k < 8; k++) h[k] += v[k];
}

void hccl_sha256_init(struct hccl_sha256* s) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(s->h, start, sizeof start);
  s->length = 0;
}

void hccl_sha256_add(struct hccl_sha256* s, const void* data, size_t n) {
  const unsigned char* p = data;
  while (n > 0) {
    size_t at = s->length % 64, part = 64 - at < n ? 64 - at : n;
    memcpy(s->block + at, p, part);
    s->length += part;
    p += part;
    n -= part;
    if (at + part == 64) compress(s->h, s->block);
  }
}

void hccl_sha256_end(struct hccl_sha256* s, unsigned char out[HCCL_SHA256_SIZE]) {
  static const unsigned char pad[64] = {0x80};
  unsigned char bits[8];
  uint64_t length = s->length;
  store_be(bits, (uint32_t)(length >> 29));
  store_be(bits + 4, (uint32_t)(length << 3));
  hccl_sha256_add(s, pad, 1 + (119 - length % 64) % 64); // up to 8 bytes before the end of a block
  hccl_sha256_add(s, bits, 8);
  for (int k = 0; k < 8; k++) store_be(out + 4 * k, s->h[k]);
}

void hccl_hmac_init(struct hccl_hmac* m, const void* key, size_t n) {
  unsigned char k[64] = {0}, pad[64];
  if (n > sizeof k) {
    hccl_sha256_init(&m->inner);
    hccl_sha256_add(&m->inner, key, n);
    hccl_sha256_end(&m->inner, k);
  } else if (n > 0) {
    memcpy(k, key, n);
  }
  hccl_sha256_init(&m->inner);
  for (int i = 0; i < 64; i++) pad[i] = k[i] ^ 0x36;
  hccl_sha256_add(&m->inner, pad, sizeof pad);
  hccl_sha256_init(&m->outer);
  for (int i = 0; i < 64; i++) pad[i] = k[i] ^ 0x5c;
  hccl_sha256_add(&m->outer, pad, sizeof pad);
}

void hccl_hmac_add(struct hccl_hmac* m, const void* data, size_t n) { hccl_sha256_add(&m->inner, data, n); }

void hccl_hmac_end(struct hccl_hmac* m, unsigned char out[HCCL_SHA256_SIZE]) {
  unsigned char digest[HCCL_SHA256_SIZE];
  hccl_sha256_end(&m->inner, digest);
  hccl_sha256_add(&m->outer, digest, sizeof digest);
  hccl_sha256_end(&m->outer, out);
}

int hccl_mac_equal(const unsigned char* a, const unsigned char* b) {
  unsigned char differ = 0;
  for (int k = 0; k < HCCL_SHA256_SIZE; k++) differ |= a[k] ^ b[k];
  return differ == 0;
}
