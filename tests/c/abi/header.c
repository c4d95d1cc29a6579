/* The header alone: compiled as C99, C11 and C++17 with all warnings as errors. The layouts of structs that programs of any release
   pass to us, checked by the compiler. */
#include <hccl_compat.h>
#include <nccl.h>
#include <hccl_compat.h>

#define IS(name, condition) typedef char name[(condition) ? 1 : -1]
#define AT(type, member, offset) IS(at_##type##_##member, offsetof(type, member) == (offset))

IS(id_size, sizeof(ncclUniqueId) == 128);
IS(config_size, sizeof(ncclConfig_t) == 120);
AT(ncclConfig_t, blocking, 16);
AT(ncclConfig_t, netName, 32);
AT(ncclConfig_t, trafficClass, 44);
AT(ncclConfig_t, commName, 48);
AT(ncclConfig_t, nvlsCTAs, 68);
AT(ncclConfig_t, numRmaCtx, 84);
AT(ncclConfig_t, hostCftMode, 108);
AT(ncclConfig_t, nvlsHostMode, 112);
IS(coll_config_size, sizeof(ncclCollConfig_t) == 72);
AT(ncclCollConfig_t, ext, 16);
AT(ncclCollConfig_t, algSelection, 40);
AT(ncclCollConfig_t, userProfilerTag, 56);
AT(ncclCollConfig_t, launchCompletionEvent, 64);
IS(ext_size, sizeof(ncclConfigExt_t) == 24);
AT(ncclConfigExt_t, val, 16);
IS(sim_size, sizeof(ncclSimInfo_t) == 24);
AT(ncclSimInfo_t, estimatedTime, 16);
IS(encryption_size, sizeof(ncclEncryptionConfig_t) == 32);
AT(ncclEncryptionConfig_t, psk, 24);
IS(wait_size, sizeof(ncclWaitSignalDesc_t) == 16);
IS(team_size, sizeof(ncclTeam_t) == 12);
IS(resource_size, sizeof(ncclDevResourceRequirements_t) == 56);
AT(ncclDevResourceRequirements_t, outGinSignalStart, 40);
IS(team_requirements_size, sizeof(ncclTeamRequirements_t) == 32);
AT(ncclTeamRequirements_t, multimem, 20);
IS(requirements_size, sizeof(ncclDevCommRequirements_t) == 120);
AT(ncclDevCommRequirements_t, ginConnectionType, 72);
AT(ncclDevCommRequirements_t, ginVaSignalsRequired, 93);
AT(ncclDevCommRequirements_t, cftBarrierCount, 112);
IS(properties_size, sizeof(ncclCommProperties_t) == 152);
AT(ncclCommProperties_t, ginSupport, 72);
AT(ncclCommProperties_t, cftCountedSupport, 146);
IS(enum_size, sizeof(ncclRedOp_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclResult_t) == 4);
IS(version, NCCL_VERSION_CODE == NCCL_VERSION(2, 32, 3) && NCCL_VERSION(2, 8, 4) == 2804);

ncclResult_t use(ncclComm_t comm);
ncclResult_t use(ncclComm_t comm) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclCollConfig_t how = NCCL_COLLCONFIG_INITIALIZER;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ncclEncryptionConfig_t secret = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  cudaStream_t stream = NULL;
  cudaEvent_t event = how.launchCompletionEvent;
  (void)event, (void)info, (void)secret;
  return comm == NCCL_COMM_NULL ? ncclSuccess : ncclAllReduce(&config, &how, config.size, ncclChar, ncclMax, comm, stream);
}
