#ifndef HCCL_ENCRYPTION_H
#define HCCL_ENCRYPTION_H
#include <stddef.h>

// Copies the key that ncclSetEncryption was given to out and returns its length, 0: none. No other one can be given any more.
size_t hccl_take_key(unsigned char* out, size_t room);
#endif
