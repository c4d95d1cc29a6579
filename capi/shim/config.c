#include "config.h"
#include "../../internal/params/source.h"
#include "error.h"
#include "versioned.h"
#include <stdlib.h>
#include <string.h>

#define INT(name, since, least, most) {#name, offsetof(ncclConfig_t, name), since, least, most}
#define POINTER(name, since) {#name, offsetof(ncclConfig_t, name), since, 1, 0}

// Since when a member exists decides whether its place is padding: see versioned.h. Ranges are NCCL's where it has any.
static const struct hccl_member members[] = {
  INT(blocking, 21400, 0, 1),
  INT(cgaClusterSize, 21701, 0, 8),
  INT(minCTAs, 21701, 1, INT_MAX),
  INT(maxCTAs, 21701, 1, INT_MAX),
  POINTER(netName, 21701),
  INT(splitShare, 21801, 0, 1),
  INT(trafficClass, 22602, 0, INT_MAX),
  POINTER(commName, 22703),
  INT(collnetEnable, 22703, 0, 1),
  INT(CTAPolicy, 22703, 0, INT_MAX),
  INT(shrinkShare, 22703, 0, 1),
  INT(nvlsCTAs, 22703, 1, INT_MAX),
  INT(nChannelsPerNetPeer, 22803, 1, INT_MAX),
  INT(nvlinkCentricSched, 22803, 0, 1),
  INT(graphUsageMode, 22902, 0, INT_MAX),
  INT(numRmaCtx, 22902, 0, INT_MAX),
  INT(maxP2pPeers, 23007, 0, INT_MAX),
  INT(graphStreamOrdering, 23007, 0, INT_MAX),
  INT(launchOrderImplicit, 23102, 0, INT_MAX),
  INT(numRmaSig, 23102, 0, INT_MAX),
  INT(rmaEagerInit, 23102, 0, 1),
  INT(hostCftMode, 23102, ncclHostCftEnable, ncclHostCftFallback),
  INT(nvlsHostMode, 23203, 0, INT_MAX),
};

static const struct hccl_layout layout = {
  .name = "ncclConfig_t",
  .first = 24,
  .last = sizeof(ncclConfig_t),
  .magic = NCCL_API_MAGIC,
  .count = sizeof members / sizeof *members,
  .members = members,
};

static int get(const ncclConfig_t* config, size_t offset, int preset) {
  int value = hccl_int_at(config, &layout, offset);
  return value == NCCL_CONFIG_UNDEF_INT ? preset : value;
}

// NCCL_COMM_BLOCKING, where it is 0 or 1, is stronger than the program.
static int blocking(int wanted) {
  const char* e = hccl_setting("NCCL_COMM_BLOCKING");
  return e != NULL && (e[0] == '0' || e[0] == '1') && e[1] == 0 ? e[0] - '0' : wanted;
}

ncclResult_t hccl_config_read(const ncclConfig_t* config, ncclComm_t comm, const char* who, struct hccl_settings* out) {
  *out = (struct hccl_settings){.blocking = blocking(1)};
  if (config == NULL) return ncclSuccess;
  ncclResult_t e = hccl_check_struct(config, &layout, comm, who);
  if (e != ncclSuccess) return e;
  out->blocking = blocking(get(config, offsetof(ncclConfig_t, blocking), 1));
  out->min_channels = get(config, offsetof(ncclConfig_t, minCTAs), 0);
  out->max_channels = get(config, offsetof(ncclConfig_t, maxCTAs), 0);
  out->name = hccl_pointer_at(config, &layout, offsetof(ncclConfig_t, commName));
  if (out->max_channels > 0 && out->min_channels > out->max_channels)
    return hccl_fail(comm, ncclInvalidArgument, "%s: minCTAs %d is above maxCTAs %d", who, out->min_channels, out->max_channels);
  return ncclSuccess;
}

void hccl_config_of(struct hccl_comm* c, struct hccl_settings* out) {
  *out = (struct hccl_settings){c->blocking, c->min_channels, c->max_channels, NULL, ""};
  pthread_mutex_lock(&c->mu);
  memcpy(out->inherited, c->name, sizeof out->inherited);
  pthread_mutex_unlock(&c->mu);
  if (out->inherited[0] != 0) out->name = out->inherited;
}
