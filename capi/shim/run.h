// The one way from the shim into the core for things to do.
#ifndef HCCL_RUN_H
#define HCCL_RUN_H
#include "handle.h"

ncclResult_t hccl_run_one(struct hccl_item* item, const struct hccl_extra* extra);
ncclResult_t hccl_run_all(struct hccl_item* items, const struct hccl_extra* extras, size_t n);
ncclResult_t hccl_simulate(struct hccl_group* g, ncclSimInfo_t* info);

// Once an item's result is there: a communicator that was not made leaves NULL at the user's place.
void hccl_settle(const struct hccl_item* item, const struct hccl_extra* extra);
#endif
