// What the shim keeps for a thread: its last error, its open group, and the text that a settings call returned. Go has no thread
// identity, hence this is here; pthread_getspecific, because a late dlopen may find no room for __thread variables.
#ifndef HCCL_THREAD_H
#define HCCL_THREAD_H
#include "api.h"

enum { HCCL_TEXT_SIZE = 1024 };

struct hccl_text {
  uint64_t when;    // larger is later; 0: none
  ncclComm_t comm;  // what it is about, or NULL
  char words[HCCL_TEXT_SIZE];
};

struct hccl_kept; // group.c: what the user's pointers pointed at

struct hccl_extra { // of an item of a group
  const void* factor; // PreMulSum with a factor on the device: read when the operation starts
  ncclComm_t* out;    // INIT and SPLIT: where the user wants the handle
};

struct hccl_group {
  int depth;
  ncclResult_t error; // the first of a call within the group
  size_t count, room;
  struct hccl_item* items;
  struct hccl_extra* extras;
  struct hccl_kept* kept;
};

struct hccl_thread {
  struct hccl_text last;
  struct hccl_group group;
  char* value; // of ncclParamGetStr
};

// The calling thread's, or NULL if it has none yet (and so no group, no error).
struct hccl_thread* hccl_thread_if(void);
// The calling thread's, made if need be; NULL only without memory.
struct hccl_thread* hccl_thread(void);
#endif
