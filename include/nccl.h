/* The name under which programs include NCCL's interface. Everything is in hccl_compat.h; the version stands here as literals,
   because build systems read these lines with a regular expression. */
#ifndef NCCL_H_
#define NCCL_H_

#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""

#define NCCL_VERSION_CODE 23203

#include "hccl_compat.h"

#endif
