// A thread's group: items wait here until ncclGroupEnd hands them to the core as one array.
#ifndef HCCL_GROUP_H
#define HCCL_GROUP_H
#include "handle.h"

// Runs an item, or keeps it for the end of the thread's group. What its pointers point at (strings, counts, ids) may then go.
// extra: NULL, or what an item needs beyond what the core is told.
ncclResult_t hccl_start(struct hccl_item* item, const struct hccl_extra* extra);

// Called with the result of every call that has a place in a group, so that ncclGroupEnd knows of an error. Returns result.
ncclResult_t hccl_noted(ncclResult_t result);

// Opens or ends a group for calls that are groups themselves.
ncclResult_t hccl_group_open(const char* who);
ncclResult_t hccl_group_close(const char* who);

// Forgets a group's items and lets go of the handles that they were to make.
void hccl_group_drop(struct hccl_group* g);
#endif
