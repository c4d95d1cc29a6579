// A settings file that has been read; see source_file.c for what may stand in it.
#ifndef HCCL_PARAMS_SOURCE_FILE_H
#define HCCL_PARAMS_SOURCE_FILE_H
#include "source.h"

enum {
  HCCL_FILE_FAULTS = 16,     // kept of one file: a binary file has as many as it has lines
  HCCL_FILE_SIZE = 1 << 20,  // bytes, about: more is no settings file
};

struct hccl_settings_file {
  char* path;
  char* text; // what lines point into
  struct hccl_setting* lines;
  size_t nlines, room;
  char* faults[HCCL_FILE_FAULTS];
  size_t nfaults;
};
#endif
