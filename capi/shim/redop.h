// Reductions that users make: PreMulSum with a factor. They belong to a communicator; a number is never given twice.
#ifndef HCCL_REDOP_H
#define HCCL_REDOP_H
#include "handle.h"

// Checks op for elements of item's type and fills item's red and scale. *factor is where the factor is to be read when the
// operation starts, NULL if it is known already.
ncclResult_t hccl_redop_use(struct hccl_comm* c, ncclComm_t comm, const char* who, int op, struct hccl_item* item,
                            const void** factor);
// The factor's bits.
uint64_t hccl_factor(const void* p, int type);
// Called with c->mu when the communicator goes.
void hccl_redops_free(struct hccl_comm* c);
#endif
