// Structs that grew from release to release: size, magic and version lead, and say which header the caller was compiled with.
// Reading one never goes past its size: an older caller's struct may end at an unmapped page.
//
//   | size | magic | version | members of the first release | members of later ones ... | padding | members we do not know ... |
//
// A member counts if it lies within size and the header's version had it: before that, its place was padding, which may hold
// anything. What lies behind the members we know must be "not set" (NULL or NCCL_CONFIG_UNDEF_INT), else the caller wants
// something that we would not do, and is told so.
#ifndef HCCL_VERSIONED_H
#define HCCL_VERSIONED_H
#include "api.h"

struct hccl_member {
  const char* name;
  unsigned short offset;
  unsigned since;   // version of the first header that has it
  int least, most;  // of an int that is set; least > most: a pointer
};

struct hccl_layout {
  const char* name;            // ncclConfig_t
  size_t first, last; // sizes of the oldest and of today's struct
  unsigned magic;
  size_t count;
  const struct hccl_member* members;
};

// Checks the struct's head, the ranges of its members and its unknown tail.
ncclResult_t hccl_check_struct(const void* p, const struct hccl_layout* layout, ncclComm_t comm, const char* who);
// The value of an int, NCCL_CONFIG_UNDEF_INT where it is not there; of a pointer, NULL where it is not there.
int hccl_int_at(const void* p, const struct hccl_layout* layout, size_t offset);
void* hccl_pointer_at(const void* p, const struct hccl_layout* layout, size_t offset);
#endif
