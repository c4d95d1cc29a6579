// ncclConfig_t: how a communicator is made.
#ifndef HCCL_CONFIG_H
#define HCCL_CONFIG_H
#include "handle.h"

struct hccl_settings {
  int blocking;
  int32_t min_channels, max_channels; // 0: choose
  const char* name;                   // the caller's, or inherited, or NULL
  char inherited[HCCL_NAME_SIZE];
};

// Reads config (NULL: all defaults). comm is only for the text.
ncclResult_t hccl_config_read(const ncclConfig_t* config, ncclComm_t comm, const char* who, struct hccl_settings* out);
// The settings of a communicator, for a child that inherits them.
void hccl_config_of(struct hccl_comm* c, struct hccl_settings* out);
#endif
