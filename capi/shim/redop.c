#include "redop.h"
#include "check.h"
#include "core.h"
#include "error.h"
#include "group.h"
#include <stdlib.h>
#include <string.h>

// coll.RedOp from PreMulSum on, and coll.Bool; numbers of user-made reductions start at FIRST.
enum { PRE_MUL_SUM = 5, AND = 6, FIRST = 1 << 8, BOOL = 14 };

static int is_ours(int op) { return op >= hcclBitAnd && op <= hcclBitXor; }

struct hccl_redop {
  int op, type;
  uint64_t scale;     // if factor is NULL
  const void* factor; // on the device: read when an operation starts
};

static _Atomic uint32_t made; // reductions of the process

static int new_op(void) { return FIRST + (int)(atomic_fetch_add(&made, 1) & 0x3fffffff); }

uint64_t hccl_factor(const void* p, int type) {
  uint64_t bits = 0;
  memcpy(&bits, p, hccl_type_size(type)); // little-endian
  return bits;
}

// find is called with c->mu. Users hold few reductions at a time.
static struct hccl_redop* find(struct hccl_comm* c, int op) {
  for (size_t k = c->nops; k-- > 0;)
    if (c->ops[k].op == op) return &c->ops[k];
  return NULL;
}

static ncclResult_t unknown(ncclComm_t comm, const char* who, int op) {
  if ((op >= 0 && op < ncclNumOps) || is_ours(op))
    return hccl_fail(comm, ncclInvalidArgument, "%s: op %d is built in and stays", who, op);
  return hccl_fail(comm, ncclInvalidArgument,
                   "%s: op %d is no reduction of this communicator: never made, made on another, or destroyed", who, op);
}

// built_in says whether a reduction that nobody made is defined for a type.
static ncclResult_t built_in(ncclComm_t comm, const char* who, int op, int type) {
  int is_bits = is_ours(op), is_float = type >= ncclFloat16 && type <= ncclFloat8e5m2;
  if (is_bits && is_float)
    return hccl_fail(comm, ncclInvalidArgument, "%s: op %d is of bits, which %s has not: it is for integers and hcclBool", who, op,
                     hccl_type_name(type));
  if (op == ncclAvg && type == BOOL)
    return hccl_fail(comm, ncclInvalidArgument, "%s: hcclBool has no mean: use ncclMax (any) or ncclMin (all)", who);
  return ncclSuccess;
}

ncclResult_t hccl_redop_use(struct hccl_comm* c, ncclComm_t comm, const char* who, int op, struct hccl_item* item,
                            const void** factor) {
  int type = item->type;
  item->red = is_ours(op) ? op - hcclBitAnd + AND : op;
  if ((op >= 0 && op < ncclNumOps) || is_ours(op)) return built_in(comm, who, op, type);
  pthread_mutex_lock(&c->mu);
  struct hccl_redop* found = find(c, op);
  struct hccl_redop r = found != NULL ? *found : (struct hccl_redop){0};
  pthread_mutex_unlock(&c->mu);
  if (found == NULL) return unknown(comm, who, op);
  if (r.type != type)
    return hccl_fail(comm, ncclInvalidArgument, "%s: reduction op %d was made for type %s, the call is of %s", who, op,
                     hccl_type_name(r.type), hccl_type_name(type));
  item->red = PRE_MUL_SUM;
  item->scale = r.scale;
  *factor = r.factor;
  return ncclSuccess;
}

void hccl_redops_free(struct hccl_comm* c) {
  free(c->ops);
  c->ops = NULL;
  c->nops = c->ops_room = 0;
}

static int add(struct hccl_comm* c, struct hccl_redop r) {
  int fits = 1;
  pthread_mutex_lock(&c->mu);
  if (c->nops == c->ops_room) {
    size_t room = c->ops_room ? 2 * c->ops_room : 4;
    struct hccl_redop* ops = realloc(c->ops, room * sizeof *ops);
    fits = ops != NULL;
    if (fits) c->ops = ops, c->ops_room = room;
  }
  if (fits) c->ops[c->nops++] = r;
  pthread_mutex_unlock(&c->mu);
  return fits;
}

static ncclResult_t create(ncclRedOp_t* op, void* scalar, int named, int residence, ncclComm_t comm) {
  static const char who[] = "ncclRedOpCreatePreMulSum";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  int type;
  if (hccl_take_type(comm, who, named, &type) != ncclSuccess) return ncclInvalidArgument;
  if (type == BOOL) return hccl_fail(comm, ncclInvalidArgument, "%s: hcclBool has no scaled sum", who);
  if (op == NULL || scalar == NULL)
    return hccl_fail(comm, ncclInvalidArgument, "%s: %s is NULL", who, op == NULL ? "op" : "scalar");
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
    return hccl_fail(comm, ncclInvalidArgument, "%s: residence %d is neither ncclScalarDevice nor ncclScalarHostImmediate", who,
                     residence);
  struct hccl_redop r = {.op = new_op(), .type = type};
  if (residence == ncclScalarDevice) r.factor = scalar;
  else r.scale = hccl_factor(scalar, type);
  if (!add(c, r)) return hccl_fail(comm, ncclSystemError, "%s: no memory for another reduction", who);
  *op = (ncclRedOp_t)r.op;
  return ncclSuccess;
}

static ncclResult_t destroy(int op, ncclComm_t comm) {
  static const char who[] = "ncclRedOpDestroy";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  pthread_mutex_lock(&c->mu);
  struct hccl_redop* r = find(c, op);
  if (r != NULL) *r = c->ops[--c->nops];
  pthread_mutex_unlock(&c->mu);
  return r != NULL ? ncclSuccess : unknown(comm, who, op);
}

HCCL_API(ncclResult_t, ncclRedOpCreatePreMulSum,
         (ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm)) {
  return hccl_noted(create(op, scalar, (int)type, (int)residence, comm));
}

HCCL_API(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) { return hccl_noted(destroy((int)op, comm)); }
