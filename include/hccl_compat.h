/* HCCL: the binary interface of NCCL 2.32.3, and with it (hccl.h) the extensions of HCCL.
 *
 * Values, layouts and prototypes are those of NCCL's public header (and of the exported functions of its device header), so that
 * a program may be compiled with either header and run with either library. The words are our own. Usable as C99 and C++17; with
 * the CUDA headers on the include path their cudaStream_t and cudaEvent_t are taken, without them they are declared here.
 *
 * On host memory every pointer is an ordinary address. With the stream NULL a call (or ncclGroupEnd) returns when its result is
 * there; with a stream of hcclStreamCreate it returns at once (see there). What differs from NCCL is said at each function below
 * and, in one table, in docs/api.md.
 *
 * Every function nccl* has a twin pnccl* of the same meaning, for tools that interpose the first name. */
#ifndef HCCL_COMPAT_H_
#define HCCL_COMPAT_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#if defined(__has_include)
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#define HCCL_HAVE_CUDA_HEADERS 1
#endif
#elif defined(__CUDA_RUNTIME_H__) || defined(__DRIVER_TYPES_H__)
#define HCCL_HAVE_CUDA_HEADERS 1
#endif
#ifndef HCCL_HAVE_CUDA_HEADERS
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
#endif

/* The version of the interface. Also in nccl.h, as literals. */
#ifndef NCCL_MAJOR
#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE 23203
#endif
/* Up to 2.8 the minor number had two digits. */
#define NCCL_VERSION(X, Y, Z) \
  (((X) <= 2 && (Y) <= 8) ? (X) * 1000 + (Y) * 100 + (Z) : (X) * 10000 + (Y) * 100 + (Z))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values ---- */

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6, /* another rank or its host failed; the text names it */
  ncclInProgress = 7,  /* of a non-blocking communicator: ask ncclCommGetAsyncError */
  ncclTimeout = 8,
  ncclNumResults = 9
} ncclResult_t;

typedef enum {
  ncclInt8 = 0, ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2, ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6, ncclHalf = 6,
  ncclFloat32 = 7, ncclFloat = 7,
  ncclFloat64 = 8, ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12,
  /* HCCL's own, taken wherever a type is; far from what NCCL may number next. */
  hcclInt16 = 64,
  hcclUint16 = 65,
  hcclBool = 66 /* a byte; what is not 0 is true, and reductions give 0 or 1: docs/numerics.md */
} ncclDataType_t;

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
/* The last value only says that the enum has 32 bits: ncclRedOpCreatePreMulSum makes values in between. */
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  /* HCCL's own: of the bits of integers, or of the truth of hcclBool; refused for floats. */
  hcclBitAnd = 64,
  hcclBitOr = 65,
  hcclBitXor = 66,
  ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

/* Where the factor of a scaled sum lies: read when an operation starts, or when the ncclRedOp_t is made. */
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

typedef enum {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef enum {
  ncclHostCftDefault = INT_MIN,
  ncclHostCftEnable = 1,
  ncclHostCftDisable = 2,
  ncclHostCftFallback = 3
} ncclHostCftMode_t;

typedef enum {
  ncclNvlsHostModeDefault = INT_MIN,
  ncclNvlsHostModeEnable = 0,
  ncclNvlsHostModeDisableTransport = 1,
  ncclNvlsHostModeDisableSymmetricMultimem = 2,
  ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

typedef enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 } ncclEncryptionMode_t;

#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_SPLIT_NOCOLOR (-1)

/* "Not set" in the structs below. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT (-1.0f)
#define NCCL_API_MAGIC 0xcafebeefu

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY 0x04
#define NCCL_WIN_CFT_COUNTED 0x08
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM 0x01

/* ---- Handles and structs ---- */

/* A communicator: one rank's membership. A handle that is wrong or stale is answered with ncclInvalidArgument. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef struct ncclParamHandle* ncclParamHandle_t;

/* Passed by value to the init calls. May travel between processes by any way, byte for byte. */
typedef struct { char internal[NCCL_UNIQUE_ID_BYTES]; } ncclUniqueId;

/* How a communicator is made. size, magic and version say which header the caller was compiled with: members beyond size are
   taken as not set. Channels are HCCL's CTAs; what has no meaning on host memory is checked and then has no effect. */
typedef struct ncclConfig_v23203 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking; /* 0: init, split and finalize return ncclInProgress */
  int cgaClusterSize;
  int minCTAs; /* channels, at least */
  int maxCTAs; /* channels, at most */
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName; /* appears in logs */
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
  int launchOrderImplicit;
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;  /* ncclHostCftMode_t */
  int nvlsHostMode; /* ncclNvlsHostMode_t */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER \
  { \
    sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, \
    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* up to maxCTAs */ \
    NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* up to trafficClass */ \
    NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* up to shrinkShare */ \
    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* up to graphUsageMode */ \
    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* up to launchOrderImplicit */ \
    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT \
  }

/* An option of some vendor, in a list that hangs on ncclCollConfig_t.ext. Options of unknown vendors are ignored. */
typedef struct ncclConfigExt {
  struct ncclConfigExt* next;
  struct {
    int vendorId;
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
} ncclConfigExt_t;

/* How one operation is done. The same rules hold as for ncclConfig_t. */
typedef struct ncclCollConfig_v23203 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;
  int minCTAs;
  int maxCTAs;
  int nvlsCTAs;
  int cgaClusterSize;
  const char* algSelection; /* algorithms to choose from, comma-separated; NULL or "": all */
  int forceAlgSelection;    /* 1: fail if none of them can do it */
  int CTAPolicy;
  uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent; /* must be NULL on host memory */
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER \
  { \
    sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NULL, \
    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* up to cgaClusterSize */ \
    NCCL_CONFIG_UNDEF_PTR, 1, NCCL_CONFIG_UNDEF_INT, 0, NULL \
  }

/* What ncclGroupSimulateEnd fills: the time that the group would take, in microseconds. */
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), 0x74685283u, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT }

typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

typedef struct ncclEncryptionConfig {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclEncryptionMode_t mode;
  const char* psk;
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER \
  { sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_ENCRYPTION_MODE_NONE, NULL }

/* ---- Functions ---- */

/* NCCL_TWO declares a function and its twin of the same type. */
#define NCCL_TWO(ret, name, params) \
  ret name params; \
  ret p##name params

/* Version 23203. Needs no communicator and starts nothing, as ncclGetErrorString. */
NCCL_TWO(ncclResult_t, ncclGetVersion, (int* version));
/* A sentence for a result code, never NULL; for ever. */
NCCL_TWO(const char*, ncclGetErrorString, (ncclResult_t result));
/* What went wrong last: on this communicator, or (NULL) in the calling thread. Never NULL, "" if nothing did. */
NCCL_TWO(const char*, ncclGetLastError, (ncclComm_t comm));
NCCL_TWO(void, ncclResetDebugInit, (void));

/* An id for one new communicator. The process that makes it must live until all ranks have met. */
NCCL_TWO(ncclResult_t, ncclGetUniqueId, (ncclUniqueId* id));
NCCL_TWO(ncclResult_t, ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId* id));

/* Make the communicator of nranks ranks of which the caller is one; returns when all have come, or with the absent ones named. */
NCCL_TWO(ncclResult_t, ncclCommInitRank, (ncclComm_t* comm, int nranks, ncclUniqueId id, int rank));
NCCL_TWO(ncclResult_t, ncclCommInitRankConfig,
         (ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config));
NCCL_TWO(ncclResult_t, ncclCommInitRankScalable,
         (ncclComm_t* comm, int nranks, int rank, int nids, ncclUniqueId* ids, ncclConfig_t* config));
/* All ranks in this process. devices only says what ncclCommCuDevice answers; NULL: 0 to count-1. */
NCCL_TWO(ncclResult_t, ncclCommInitAll, (ncclComm_t* comms, int count, const int* devices));

/* Divide a communicator: ranks of one colour come together, in the order of (key, old rank). */
NCCL_TWO(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config));
/* Finish what was started; Destroy and Abort then let go. Neither waits for ranks that are gone. */
NCCL_TWO(ncclResult_t, ncclCommFinalize, (ncclComm_t comm));
NCCL_TWO(ncclResult_t, ncclCommDestroy, (ncclComm_t comm));
NCCL_TWO(ncclResult_t, ncclCommAbort, (ncclComm_t comm));
NCCL_TWO(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* state));

NCCL_TWO(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count));
NCCL_TWO(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank));
NCCL_TWO(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device));

/* Memory that the ranks of one host read in place. Ordinary memory works everywhere, too. */
NCCL_TWO(ncclResult_t, ncclMemAlloc, (void** ptr, size_t size));
NCCL_TWO(ncclResult_t, ncclMemFree, (void* ptr));
NCCL_TWO(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle));
NCCL_TWO(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle));
NCCL_TWO(ncclResult_t, ncclCommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value));

/* A reduction that scales each rank's input by that rank's own factor and sums. Valid on this communicator only. */
NCCL_TWO(ncclResult_t, ncclRedOpCreatePreMulSum,
         (ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm));
NCCL_TWO(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm));

/* ---- Operations. Counts are elements; a buffer that this rank does not use may be NULL ---- */

NCCL_TWO(ncclResult_t, ncclAllReduce,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclReduce,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
          cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclBroadcast,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclBcast,
         (void* buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream));
/* In the next four count is the size of one rank's block. In place: the own block lies where it lies in the larger buffer. */
NCCL_TWO(ncclResult_t, ncclAllGather,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclReduceScatter,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclGather,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclScatter,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream));
/* count elements to and from each rank; not in place. */
NCCL_TWO(ncclResult_t, ncclAlltoAll,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclSend,
         (const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclRecv,
         (void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream));

/* The same with a config for this call; NULL is the plain call. */
NCCL_TWO(ncclResult_t, ncclAllReduceConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclReduceConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
          cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclBroadcastConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclAllGatherConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclReduceScatterConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclGatherConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclScatterConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));
NCCL_TWO(ncclResult_t, ncclAlltoAllConfig,
         (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
          const ncclCollConfig_t* config));

/* Calls of one thread between Start and End are one thing to do: one thread may so hold several ranks, and messages cross. An
   error of a call within a group is also the result of End, and nothing of the group is then done. */
NCCL_TWO(ncclResult_t, ncclGroupStart, (void));
NCCL_TWO(ncclResult_t, ncclGroupEnd, (void));
/* Ends a group without doing it. */
NCCL_TWO(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t* info));

/* ---- Settings: what the environment says, or the default ---- */

NCCL_TWO(ncclResult_t, ncclParamBind, (ncclParamHandle_t* handle, const char* key));
NCCL_TWO(ncclResult_t, ncclParamGetI8, (ncclParamHandle_t handle, int8_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetI16, (ncclParamHandle_t handle, int16_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetI32, (ncclParamHandle_t handle, int32_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetI64, (ncclParamHandle_t handle, int64_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetU8, (ncclParamHandle_t handle, uint8_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetU16, (ncclParamHandle_t handle, uint16_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetU32, (ncclParamHandle_t handle, uint32_t* value));
NCCL_TWO(ncclResult_t, ncclParamGetU64, (ncclParamHandle_t handle, uint64_t* value));
/* The text lives until the thread's next such call. */
NCCL_TWO(ncclResult_t, ncclParamGetStr, (ncclParamHandle_t handle, const char** value));
/* The value as it is kept: a number as int64_t, a text with its end; size is the room at out, length what was written. */
NCCL_TWO(ncclResult_t, ncclParamGet, (ncclParamHandle_t handle, void* out, int size, int* length));
NCCL_TWO(ncclResult_t, ncclParamGetParameter, (const char* key, const char** value, int* length));
NCCL_TWO(ncclResult_t, ncclParamGetAllParameterKeys, (const char*** keys, int* count));
NCCL_TWO(void, ncclParamDumpAll, (void)); /* on standard error */

/* ---- Not there yet: ncclInvalidUsage, with a text ---- */

NCCL_TWO(ncclResult_t, ncclCommShrink,
         (ncclComm_t comm, int* excluded, int excluded_count, ncclComm_t* child, ncclConfig_t* config, int flags));
NCCL_TWO(ncclResult_t, ncclCommGrow,
         (ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* child, ncclConfig_t* config));
NCCL_TWO(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int flags));
NCCL_TWO(ncclResult_t, ncclCommSuspend, (ncclComm_t comm, int flags));
NCCL_TWO(ncclResult_t, ncclCommResume, (ncclComm_t comm));
NCCL_TWO(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t* config));

NCCL_TWO(ncclResult_t, ncclCommWindowRegister, (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int flags));
NCCL_TWO(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win));
NCCL_TWO(ncclResult_t, ncclWinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void** ptr));
NCCL_TWO(ncclResult_t, ncclPutSignal,
         (const void* local, size_t count, ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int signal, int ctx,
          unsigned int flags, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclSignal, (int peer, int signal, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream));
NCCL_TWO(ncclResult_t, ncclWaitSignal, (int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream));

/* Host functions of the device API. */

typedef enum {
  NCCL_GIN_CONNECTION_NONE = 0,
  NCCL_GIN_CONNECTION_FULL = 1,
  NCCL_GIN_CONNECTION_RAIL = 2,
  NCCL_GIN_CONNECTION_CUSTOM_STRIDE = 3
} ncclGinConnectionType_t;

typedef enum {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2,
  NCCL_GIN_TYPE_GDAKI = 3,
  NCCL_GIN_TYPE_GPI = 4,
  NCCL_GIN_TYPE_EFA_GDA = 5,
  NCCL_GIN_MAX_TYPES = 6
} ncclGinType_t;

typedef enum { NCCL_CFT_TEAM_FLAT = 0, NCCL_CFT_TEAM_HIER_MULTIMEM = 1, NCCL_CFT_TEAM_HIER_LSA = 2 } ncclCftTeamMode_t;
typedef enum { NCCL_CFT_NONE = 0, NCCL_CFT = 1, NCCL_CFT_MULTIMEM = 2 } ncclCftCap_t;

typedef uint32_t ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;
typedef struct ncclCftLeId ncclCftLeId;
typedef struct ncclDevComm ncclDevComm_t;

typedef struct ncclTeam { int nRanks, rank, stride; } ncclTeam_t;
typedef struct ncclMultimemHandle { void* mcBasePtr; } ncclMultimemHandle_t;
typedef struct ncclLLA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t nSlots;
} ncclLLA2AHandle_t;
typedef struct ncclLsaBarrierHandle {
  ncclDevResourceHandle_t bufHandle;
  int nBarriers;
} ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle {
  ncclGinSignal_t signal0;
  uint32_t unused;
} ncclGinBarrierHandle_t;

typedef struct ncclDevResourceRequirements {
  struct ncclDevResourceRequirements* next;
  size_t bufferSize, bufferAlign;
  ncclDevResourceHandle_t* outBufferHandle;
  int ginSignalCount, ginCounterCount;
  ncclGinSignal_t* outGinSignalStart;
  ncclGinCounter_t* outGinCounterStart;
} ncclDevResourceRequirements_t;

typedef struct ncclTeamRequirements {
  struct ncclTeamRequirements* next;
  ncclTeam_t team;
  bool multimem;
  ncclMultimemHandle_t* outMultimemHandle;
} ncclTeamRequirements_t;

typedef struct ncclDevCommRequirements {
  size_t size;
  unsigned int magic, version;
  ncclDevResourceRequirements_t* resourceRequirementsList;
  ncclTeamRequirements_t* teamRequirementsList;
  bool lsaMultimem;
  int barrierCount, lsaBarrierCount, railGinBarrierCount;
  int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount, ginSignalCount, ginCounterCount;
  ncclGinConnectionType_t ginConnectionType;
  bool ginExclusiveContexts;
  int ginQueueDepth, ginTrafficClass, worldGinBarrierCount;
  bool ginStrongSignalsRequired, ginVaSignalsRequired;
  int ginCustomStride;
  ncclGinType_t ginType;
  bool useRuntimeVersion;
  int cftCaps, cftBarrierCount;
} ncclDevCommRequirements_t;

typedef struct ncclCommProperties {
  size_t size;
  unsigned int magic, version;
  int rank, nRanks, cudaDev, nvmlDev;
  bool deviceApiSupport, multimemSupport;
  ncclGinType_t ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  ncclGinType_t railedGinType;
  uint64_t commHash;
  int ginMinStride;
  ncclGinConnectionType_t ginConnectionType;
  uint64_t ginSupport[8];
  size_t devCommRuntimeVersionSize;
  bool cftSupport, cftMulticastSupport, cftCountedSupport;
} ncclCommProperties_t;

NCCL_TWO(ncclResult_t, ncclCommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* properties));
NCCL_TWO(ncclResult_t, ncclDevCommCreate,
         (ncclComm_t comm, const ncclDevCommRequirements_t* requirements, ncclDevComm_t* device_comm));
NCCL_TWO(ncclResult_t, ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* device_comm));

NCCL_TWO(ncclTeam_t, ncclTeamWorld, (ncclComm_t comm));
NCCL_TWO(ncclTeam_t, ncclTeamLsa, (ncclComm_t comm));
NCCL_TWO(ncclTeam_t, ncclTeamRail, (ncclComm_t comm));
NCCL_TWO(ncclTeam_t, ncclTeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode));
NCCL_TWO(ncclTeam_t, ncclTeamCftMultimem, (ncclComm_t comm));
NCCL_TWO(int, ncclTeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank));
NCCL_TWO(int, ncclTeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank));

NCCL_TWO(ncclResult_t, ncclGetLsaDevicePointer, (ncclWindow_t win, size_t offset, int lsa_rank, void** ptr));
NCCL_TWO(ncclResult_t, ncclGetPeerDevicePointer, (ncclWindow_t win, size_t offset, int peer, void** ptr));
NCCL_TWO(ncclResult_t, ncclGetLsaMultimemDevicePointer, (ncclWindow_t win, size_t offset, void** ptr));
NCCL_TWO(ncclResult_t, ncclGetMultimemDevicePointer,
         (ncclWindow_t win, size_t offset, ncclMultimemHandle_t multimem, void** ptr));
NCCL_TWO(ncclResult_t, ncclGetPeerDeviceLeInfo,
         (ncclWindow_t win, size_t offset, int peer, ncclCftLeId* le, size_t* le_offset));
NCCL_TWO(ncclResult_t, ncclGetMultimemDeviceLeInfo, (ncclWindow_t win, size_t offset, ncclCftLeId* le, size_t* le_offset));
NCCL_TWO(ncclResult_t, ncclGetCftDeviceLeInfo,
         (ncclWindow_t win, size_t offset, int rank, ncclTeam_t team, ncclCftLeId* le, size_t* le_offset));

NCCL_TWO(ncclResult_t, ncclLsaBarrierCreateRequirement,
         (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t* handle, ncclDevResourceRequirements_t* requirements));
NCCL_TWO(ncclResult_t, ncclGinBarrierCreateRequirement,
         (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t* handle,
          ncclDevResourceRequirements_t* requirements));
NCCL_TWO(int, ncclLLA2ACalcSlots, (int max_elements, int max_element_size));
NCCL_TWO(ncclResult_t, ncclLLA2ACreateRequirement,
         (int blocks, int slots, ncclLLA2AHandle_t* handle, ncclDevResourceRequirements_t* requirements));

#undef NCCL_TWO

#ifdef __cplusplus
}
#endif

#include "hccl.h"

#endif
