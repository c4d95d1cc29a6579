// Host functions of NCCL's device API. There are no devices here yet: what asks about the communicator is answered as it is, the
// rest says that it is absent.
#include "absent.h"
#include "error.h"
#include "handle.h"
#include <string.h>

static const ncclTeam_t no_team; // no rank in it

static ncclTeam_t absent_team(ncclComm_t comm, const char* who) {
  hccl_absent_on(comm, who);
  return no_team;
}

HCCL_API(ncclTeam_t, ncclTeamWorld, (ncclComm_t comm)) {
  struct hccl_comm* c = hccl_need(comm, "ncclTeamWorld");
  int nranks = c != NULL ? atomic_load_explicit(&c->nranks, memory_order_acquire) : 0;
  return nranks > 0 ? (ncclTeam_t){nranks, atomic_load(&c->rank), 1} : no_team;
}

HCCL_API(ncclTeam_t, ncclTeamLsa, (ncclComm_t comm)) { return absent_team(comm, "ncclTeamLsa"); }
HCCL_API(ncclTeam_t, ncclTeamRail, (ncclComm_t comm)) { return absent_team(comm, "ncclTeamRail"); }
HCCL_API(ncclTeam_t, ncclTeamCftMultimem, (ncclComm_t comm)) { return absent_team(comm, "ncclTeamCftMultimem"); }
HCCL_API(ncclTeam_t, ncclTeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode)) {
  (void)mode;
  return absent_team(comm, "ncclTeamCft");
}

// A team is an arithmetic series of ranks in which the caller has the given place.
HCCL_API(int, ncclTeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank)) {
  struct hccl_comm* c = hccl_need(comm, "ncclTeamRankToWorld");
  if (c == NULL) return -1;
  return atomic_load(&c->rank) + (rank - team.rank) * team.stride;
}

HCCL_API(int, ncclTeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank)) {
  (void)team, (void)rank;
  hccl_absent_on(comm, "ncclTeamRankToLsa");
  return -1;
}

HCCL_API(ncclResult_t, ncclCommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* properties)) {
  static const char who[] = "ncclCommQueryProperties";
  if (properties != NULL || hccl_find(comm) == NULL) return hccl_absent_on(comm, who);
  return hccl_fail(comm, ncclInvalidArgument, "%s: properties is NULL", who);
}

HCCL_API(ncclResult_t, ncclDevCommCreate,
         (ncclComm_t comm, const ncclDevCommRequirements_t* requirements, ncclDevComm_t* device_comm)) {
  (void)requirements, (void)device_comm;
  return hccl_absent_on(comm, "ncclDevCommCreate");
}

HCCL_API(ncclResult_t, ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* device_comm)) {
  (void)device_comm;
  return hccl_absent_on(comm, "ncclDevCommDestroy");
}

// No window can be made, so every one is wrong.
static ncclResult_t no_window(const void* win, const char* who) {
  return hccl_fail(NULL, ncclInvalidArgument, "%s: win %s: HCCL has no windows yet", who, win == NULL ? "is NULL" : "is no window");
}

HCCL_API(ncclResult_t, ncclGetLsaDevicePointer, (ncclWindow_t win, size_t offset, int lsa_rank, void** ptr)) {
  (void)offset, (void)lsa_rank, (void)ptr;
  return no_window(win, "ncclGetLsaDevicePointer");
}

HCCL_API(ncclResult_t, ncclGetPeerDevicePointer, (ncclWindow_t win, size_t offset, int peer, void** ptr)) {
  (void)offset, (void)peer, (void)ptr;
  return no_window(win, "ncclGetPeerDevicePointer");
}

HCCL_API(ncclResult_t, ncclGetLsaMultimemDevicePointer, (ncclWindow_t win, size_t offset, void** ptr)) {
  (void)offset, (void)ptr;
  return no_window(win, "ncclGetLsaMultimemDevicePointer");
}

HCCL_API(ncclResult_t, ncclGetMultimemDevicePointer,
         (ncclWindow_t win, size_t offset, ncclMultimemHandle_t multimem, void** ptr)) {
  (void)offset, (void)multimem, (void)ptr;
  return no_window(win, "ncclGetMultimemDevicePointer");
}

HCCL_API(ncclResult_t, ncclGetPeerDeviceLeInfo,
         (ncclWindow_t win, size_t offset, int peer, ncclCftLeId* le, size_t* le_offset)) {
  (void)offset, (void)peer, (void)le, (void)le_offset;
  return no_window(win, "ncclGetPeerDeviceLeInfo");
}

HCCL_API(ncclResult_t, ncclGetMultimemDeviceLeInfo, (ncclWindow_t win, size_t offset, ncclCftLeId* le, size_t* le_offset)) {
  (void)offset, (void)le, (void)le_offset;
  return no_window(win, "ncclGetMultimemDeviceLeInfo");
}

HCCL_API(ncclResult_t, ncclGetCftDeviceLeInfo,
         (ncclWindow_t win, size_t offset, int rank, ncclTeam_t team, ncclCftLeId* le, size_t* le_offset)) {
  (void)offset, (void)rank, (void)team, (void)le, (void)le_offset;
  return no_window(win, "ncclGetCftDeviceLeInfo");
}

HCCL_API(ncclResult_t, ncclLsaBarrierCreateRequirement,
         (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t* handle, ncclDevResourceRequirements_t* requirements)) {
  (void)team, (void)barriers, (void)requirements;
  return hccl_absent_with(handle, "ncclLsaBarrierCreateRequirement", "handle");
}

HCCL_API(ncclResult_t, ncclGinBarrierCreateRequirement,
         (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t* handle,
          ncclDevResourceRequirements_t* requirements)) {
  (void)team, (void)barriers, (void)handle, (void)requirements;
  return hccl_absent_on(comm, "ncclGinBarrierCreateRequirement");
}

HCCL_API(int, ncclLLA2ACalcSlots, (int max_elements, int max_element_size)) {
  (void)max_elements, (void)max_element_size;
  hccl_absent(NULL, "ncclLLA2ACalcSlots");
  return 0;
}

HCCL_API(ncclResult_t, ncclLLA2ACreateRequirement,
         (int blocks, int slots, ncclLLA2AHandle_t* handle, ncclDevResourceRequirements_t* requirements)) {
  (void)blocks, (void)slots, (void)requirements;
  return hccl_absent_with(handle, "ncclLLA2ACreateRequirement", "handle");
}

// A debugger's call: NCCL reads NCCL_DEBUG anew. HCCL does so at each init by itself.
HCCL_API(void, ncclResetDebugInit, (void)) {}
