// Whether this process has room for the core. A Go runtime that lacks it ends the process.
#ifndef HCCL_ROOM_H
#define HCCL_ROOM_H
#include <stddef.h>

// 1, or 0 with what is missing and what to do in why.
int hccl_room_for_core(char* why, size_t size);
#endif
