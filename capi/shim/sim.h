// ncclSimInfo_t: what ncclGroupSimulateEnd answers.
#ifndef HCCL_SIM_H
#define HCCL_SIM_H
#include "api.h"

ncclResult_t hccl_sim_check(const ncclSimInfo_t* info, const char* who); // info may be NULL: nobody wants the answer
void hccl_sim_fill(ncclSimInfo_t* info, float microseconds);
#endif
