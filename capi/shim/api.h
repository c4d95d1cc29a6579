// What every file of the shim includes: the public header with its functions made visible, and the macro that defines a public
// function together with its twin. All else in the shim is hidden (-fvisibility=hidden, and capi/shim.map).
//
// The shim is libnccl.so.2: plain C that checks arguments, keeps handles, groups and texts, answers queries, and loads the Go core
// at the first call that needs it (core.h). It moves no data and starts no thread except the one that unique ids need (meet.h).
//
//   user's call -> coll.c, message.c, vector.c, init.c    arguments checked, one struct hccl_item filled
//               -> group.c                                 kept until ncclGroupEnd, or run at once
//               -> core_table.h                            table.fast (C) or table.enqueue (Go)
//
// Our C calls no function of glibc that came after 2.17, uses no __thread (the library must load late into full processes), and
// never calls a public name of its own: a tool may have put another function in its place.
#ifndef HCCL_API_H
#define HCCL_API_H

#pragma GCC visibility push(default)
#include "../../include/nccl.h"
#pragma GCC visibility pop

#include "../core_table.h"

#define HCCL_API(ret, name, params) \
  ret p##name params __attribute__((alias(#name))); \
  ret name params

_Static_assert(sizeof(void*) == 8, "handles need 64 bits");
#endif
