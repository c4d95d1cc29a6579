// ncclCollConfig_t: how one operation is done.
#ifndef HCCL_COLL_CONFIG_H
#define HCCL_COLL_CONFIG_H
#include "api.h"

// Checks config and fills what item says of algorithms and channels. item.algo is the caller's.
ncclResult_t hccl_coll_config(const ncclCollConfig_t* config, ncclComm_t comm, const char* who, struct hccl_item* item);
#endif
