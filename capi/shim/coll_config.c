#include "coll_config.h"
#include "error.h"
#include "versioned.h"

#define INT(name, since, least, most) {#name, offsetof(ncclCollConfig_t, name), since, least, most}
#define POINTER(name, since) {#name, offsetof(ncclCollConfig_t, name), since, 1, 0}

// userProfilerTag may be anything, and options in ext are of vendors whom we do not know: neither is looked at.
static const struct hccl_member members[] = {
  INT(minCTAs, 23102, 1, INT_MAX),
  INT(maxCTAs, 23102, 1, INT_MAX),
  INT(nvlsCTAs, 23102, 1, INT_MAX),
  INT(cgaClusterSize, 23102, 0, 8),
  POINTER(algSelection, 23102),
  INT(forceAlgSelection, 23102, 0, 1),
  INT(CTAPolicy, 23102, 0, INT_MAX),
  POINTER(launchCompletionEvent, 23203),
};

static const struct hccl_layout layout = {
  .name = "ncclCollConfig_t",
  .first = 64,
  .last = sizeof(ncclCollConfig_t),
  .magic = NCCL_API_MAGIC,
  .count = sizeof members / sizeof *members,
  .members = members,
};

static int get(const ncclCollConfig_t* config, size_t offset, int preset) {
  int value = hccl_int_at(config, &layout, offset);
  return value == NCCL_CONFIG_UNDEF_INT ? preset : value;
}

ncclResult_t hccl_coll_config(const ncclCollConfig_t* config, ncclComm_t comm, const char* who, struct hccl_item* item) {
  ncclResult_t e = hccl_check_struct(config, &layout, comm, who);
  if (e != ncclSuccess) return e;
  item->min_channels = get(config, offsetof(ncclCollConfig_t, minCTAs), 0);
  item->max_channels = get(config, offsetof(ncclCollConfig_t, maxCTAs), 0);
  item->algo = hccl_pointer_at(config, &layout, offsetof(ncclCollConfig_t, algSelection));
  item->algo_forced = get(config, offsetof(ncclCollConfig_t, forceAlgSelection), 1);
  if (item->max_channels > 0 && item->min_channels > item->max_channels)
    return hccl_fail(comm, ncclInvalidArgument, "%s: minCTAs %d is above maxCTAs %d", who, item->min_channels, item->max_channels);
  if (hccl_pointer_at(config, &layout, offsetof(ncclCollConfig_t, launchCompletionEvent)) != NULL)
    return hccl_fail(comm, ncclInvalidUsage, "%s: launchCompletionEvent needs a CUDA stream, and this is host memory", who);
  return ncclSuccess;
}
