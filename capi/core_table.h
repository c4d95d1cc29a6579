// What the shim (libnccl.so.2, plain C) and the core (libhccl_core.so, Go) know of each other: the core exports one function,
// hccl_core_open, which takes the shim's services and returns the table of its entry points. Private: both objects are always
// built together, and the version below is compared when the core is loaded.
#ifndef HCCL_CORE_TABLE_H
#define HCCL_CORE_TABLE_H
#include <stddef.h>
#include <stdint.h>

#define HCCL_TABLE_VERSION 6u

// A stream, event or request is a number below a mark in the upper 16 bits, which no address of a program has.
#define HCCL_HANDLE_SHIFT 48
#define HCCL_STREAM_MARK 0x4853ull
#define HCCL_EVENT_MARK 0x4845ull
#define HCCL_REQUEST_MARK 0x4852ull

struct ncclComm; // never defined: a handle is a number with a generation (shim/handle.h), so that a stale one is an error and not a crash

enum hccl_item_kind { HCCL_ITEM_CALL, HCCL_ITEM_INIT, HCCL_ITEM_SPLIT };

enum { HCCL_ANY = -1 };

struct hccl_status { // hcclStatus_t, core.Status
  int32_t source, tag;
  uint64_t bytes;
};

// One thing to do. A group collects items; a call outside a group is one item. Arguments have been checked by the shim.
struct hccl_item {
  uint32_t kind;          // enum hccl_item_kind
  uint32_t func;          // coll.Func
  struct ncclComm* comm;  // CALL: the communicator; INIT and SPLIT: the one to be made (NULL: a split without colour)
  uint64_t id;            // CALL: comm's number; SPLIT: the parent's
  uint64_t new_id;        // INIT and SPLIT: the number of the communicator to be made. The shim chooses numbers, never 0, never twice
  const void* send;
  void* recv;
  uint64_t count;         // elements, as the call counts them
  int32_t type, red;      // coll.DataType, coll.RedOp
  int32_t root;           // root, or the peer of a message; HCCL_ANY: a receive from any rank
  int32_t tag;            // of a message; HCCL_ANY: a receive of any
  int32_t up_to;          // a receive takes fewer elements than count, too
  struct hccl_status* status; // of a receive: filled by the core until the call ends; NULL: not wanted
  int64_t limit;          // CALL: milliseconds for the whole of it; 0: the communicator's limit, negative: none
  uint64_t scale;         // PreMulSum: the factor, bits of type
  void* stream;           // NULL: the call is synchronous; else a handle of stream_create
  const void* factor;     // on a stream: where scale is to be read when the operation begins; NULL: it is known
  const uint64_t* scounts; // V forms: elements to (all-to-all-v) each rank, and their offsets; NULL otherwise
  const uint64_t* sdispls;
  const uint64_t* rcounts; // V forms: elements of each rank, and their offsets
  const uint64_t* rdispls;
  const char* algo;       // the algorithms that this call asks for, comma-separated; NULL or "": choose
  int32_t algo_forced;    // whether an unknown or unfit algo is an error
  int32_t min_channels, max_channels; // 0: choose
  int32_t nranks, rank;   // INIT
  int32_t device;         // INIT: ordinal that ncclCommCuDevice answers
  int32_t nids;           // INIT
  const void* ids;        // INIT: nids unique ids of 128 bytes
  int32_t color, key;     // SPLIT
  int32_t blocking;       // INIT and SPLIT: 0 returns ncclInProgress at once
  const char* name;       // INIT and SPLIT: the communicator's name for logs, or NULL
  int32_t result;         // out: ncclResult_t of this item
};

// What the core may ask of the shim. All may be called on any thread.
struct hccl_services {
  uint32_t version;
  // Keeps a text for ncclGetLastError: of comm (may be NULL) and, unless later is set, of the calling thread.
  void (*error)(struct ncclComm* comm, const char* text, int later);
  // Fills a handle once its communicator exists; hot is for table.fast, NULL if there is no such path. A hot given earlier is
  // taken back by a call with NULL, after which no thread is inside table.fast with it.
  void (*ready)(struct ncclComm* comm, int rank, int nranks, void* hot);
  // Descriptors that a forked child must close: every one that the core opens and keeps.
  void (*fd_opened)(int fd);
  void (*fd_closed)(int fd);
  const char* (*path)(void); // where the shim was loaded from
  unsigned long long (*strangers)(void); // connections that its maker of ids has turned away
  // The key that the program gave for encryption: its bytes to out, and how many, 0: none. It can give no other from then on.
  size_t (*take_key)(unsigned char* out, size_t room);
};

struct hccl_core_table {
  uint32_t version, size;
  // To be called once on each thread, with all signals blocked, before any other entry: see capi/shim/core.h. threads: how many
  // there are now that enter.
  void (*attach)(int threads);
  // Small operations among ranks of one host, in C: an ncclResult_t, or -1: not here, take enqueue.
  int (*fast)(void* hot, const struct hccl_item* item);
  // Runs items, or starts them where their communicator is non-blocking; the first error, each item's own in result.
  int (*enqueue)(struct hccl_item* items, size_t n);
  int (*simulate)(const struct hccl_item* items, size_t n, float* microseconds);
  int (*finalize)(uint64_t id);
  int (*destroy)(uint64_t id);
  int (*abort)(uint64_t id);
  int (*async_error)(uint64_t id, int* state); // ncclInProgress while init, split or finalize go on
  int (*mem_alloc)(void** out, size_t size);
  int (*mem_free)(void* p);
  int (*comm_register)(uint64_t id, void* p, size_t size, void** handle);
  int (*comm_deregister)(uint64_t id, void* handle);
  int (*mem_stats)(uint64_t id, int stat, uint64_t* value);
  // Reads (get not NULL) or sets how long an operation may stand still: milliseconds, 0: for ever.
  int (*comm_limit)(uint64_t id, int64_t set, int64_t* get);
  int (*stream_create)(void** stream);
  int (*stream_known)(void* stream); // ncclSuccess, or ncclInvalidArgument with a text
  int (*stream_destroy)(void* stream);
  int (*stream_synchronize)(void* stream);
  int (*stream_query)(void* stream);
  int (*stream_host_func)(void* stream, void (*fn)(void*), void* arg);
  int (*stream_wait_event)(void* stream, void* event);
  int (*event_create)(void** event);
  int (*event_destroy)(void* event);
  int (*event_record)(void* event, void* stream); // stream may be NULL, as everything on it is done
  int (*event_synchronize)(void* event);
  int (*event_query)(void* event);
  int (*event_elapsed)(void* start, void* end, float* milliseconds);
  int (*request_start)(const struct hccl_item* item, void** request);
  // Waits for all of them, or (index not NULL) for one, whose place is stored; limit in milliseconds, 0: only look, negative: none.
  // ncclInProgress: the limit is over. Else how the request ended, of all the first that failed.
  int (*request_wait)(void* const* requests, size_t n, int64_t limit, size_t* index);
  int (*request_status)(void* request, struct hccl_status* status); // how it ended; ncclInProgress: it has not
  int (*request_notify)(void* request, void (*fn)(void* request, int result, void* arg), void* arg);
  int (*request_cancel)(void* request);
  int (*request_free)(void* request);
};

// The core's one entry point. NULL where services->version differs.
const struct hccl_core_table* hccl_core_open(const struct hccl_services* services);
#endif
