// The C view of device.Cmd, field by field: cmd_test.go compares sizes and offsets. Other C of the core fills these structs too,
// and calls hccl_host_run through the pointer that host.RunFunc returns.
#ifndef HCCL_HOST_CMD_H
#define HCCL_HOST_CMD_H
#include <stdint.h>

enum { HCCL_MAX_SRC = 64 };
enum hccl_cmd_op { HCCL_COPY, HCCL_REDUCE };

// coll.DataType and coll.RedOp.
enum hccl_type {
  HCCL_I8, HCCL_U8, HCCL_I32, HCCL_U32, HCCL_I64, HCCL_U64, HCCL_F16, HCCL_F32, HCCL_F64, HCCL_BF16, HCCL_E4M3, HCCL_E5M2,
  HCCL_I16, HCCL_U16, HCCL_BOOL,
  HCCL_TYPES,
  HCCL_I128 = 32, HCCL_U128,
};
enum hccl_red { HCCL_SUM, HCCL_PROD, HCCL_MAX, HCCL_MIN, HCCL_AVG, HCCL_PREMULSUM, HCCL_AND, HCCL_OR, HCCL_XOR, HCCL_REDS };

struct hccl_cmd {
  uint8_t op, red, src_type, acc, dst_type, nsrc, ndst;
  int8_t scaled;
  uint8_t stream, shared;
  uint64_t n, scale, div;
  uintptr_t init, dst[2], src[HCCL_MAX_SRC];
};

// Runs cmds in order on the calling thread. Returns 0, or the position (from 1) of the first that makes no sense; those before it
// have run.
int hccl_host_run(const struct hccl_cmd* cmds, int n);
#endif
