// HCCL's own forms with blocks of different sizes: counts and displacements in elements, one per rank, 64 bits. A NULL for the
// displacements means blocks that follow each other; the core is always given both arrays.
#include "check.h"
#include "coll.h"
#include "error.h"
#include "group.h"
#include "redop.h"
#include "stream.h"
#include <stdlib.h>

struct blocks { // a buffer that holds one block for each rank
  const char* what;
  const void* p;
  const uint64_t *counts, *displs;
  uint64_t* packed; // owned, where the caller gave no displs
  uint64_t total;   // elements of all blocks
  size_t end;       // bytes from p to the end of the last
};

static ncclResult_t measure(struct blocks* b, ncclComm_t comm, const char* who, int nranks, size_t size) {
  if (b->counts == NULL) return hccl_fail(comm, ncclInvalidArgument, "%s: the counts of %s are NULL", who, b->what);
  if (b->displs == NULL) b->displs = b->packed = malloc((size_t)nranks * sizeof *b->packed);
  if (b->displs == NULL) return hccl_fail(comm, ncclSystemError, "%s: no memory for %d displacements", who, nranks);
  for (int r = 0; r < nranks; r++) {
    size_t end;
    if (b->packed != NULL) b->packed[r] = b->total;
    if (b->counts[r] > UINT64_MAX - b->displs[r] || b->counts[r] > UINT64_MAX - b->total)
      return hccl_fail(comm, ncclInvalidArgument, "%s: count %llu of rank %d in %s does not fit into memory", who,
                       (unsigned long long)b->counts[r], r, b->what);
    b->total += b->counts[r];
    ncclResult_t e = hccl_check_extent(comm, who, b->p, b->displs[r] + b->counts[r], size, 1, &end);
    if (e != ncclSuccess) return e;
    if (b->counts[r] > 0 && end > b->end) b->end = end;
  }
  return b->end > 0 ? hccl_check_pointer(comm, who, b->what, b->p) : ncclSuccess;
}

// known refuses a communicator whose size is not known yet: the arrays could not even be read.
static ncclResult_t known(struct hccl_comm* c, ncclComm_t comm, const char* who, int named, cudaStream_t stream,
                          struct hccl_item* item, int* nranks) {
  *nranks = atomic_load_explicit(&c->nranks, memory_order_acquire);
  if (*nranks == 0)
    return hccl_fail(comm, ncclInvalidUsage, "%s: the communicator is still being made: ask ncclCommGetAsyncError first", who);
  ncclResult_t e = hccl_take_stream(comm, who, stream, &item->stream);
  return e == ncclSuccess ? hccl_take_type(comm, who, named, &item->type) : e;
}

static const char* own(const struct blocks* b, int rank, size_t size) { return (const char*)b->p + b->displs[rank] * size; }

static ncclResult_t gather_v(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, int type,
                             ncclComm_t comm, cudaStream_t stream) {
  static const char who[] = "hcclAllGatherV";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  int nranks, rank = atomic_load(&c->rank);
  struct blocks b = {.what = "the receive buffer", .p = recv, .counts = counts, .displs = displs};
  struct hccl_item item = {.kind = HCCL_ITEM_CALL, .func = HCCL_ALL_GATHER_V, .comm = comm, .id = hccl_number(c, comm),
                           .send = send, .recv = recv};
  ncclResult_t e = known(c, comm, who, type, stream, &item, &nranks);
  if (e != ncclSuccess) return e;
  size_t size = hccl_type_size(item.type);
  e = measure(&b, comm, who, nranks, size);
  if (e == ncclSuccess && counts[rank] > 0) {
    e = hccl_check_pointer(comm, who, "the send buffer", send);
    if (e == ncclSuccess)
      e = hccl_check_overlap(comm, who, send, counts[rank] * size, recv, b.end, own(&b, rank, size), NULL);
  }
  item.count = b.total, item.rcounts = counts, item.rdispls = b.displs, item.nranks = nranks;
  if (e == ncclSuccess) e = hccl_start(&item, NULL);
  free(b.packed);
  return e;
}

static ncclResult_t reduce_v(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, int type, int op,
                             ncclComm_t comm, cudaStream_t stream) {
  static const char who[] = "hcclReduceScatterV";
  struct hccl_comm* c = hccl_need(comm, who);
  if (c == NULL) return ncclInvalidArgument;
  int nranks, rank = atomic_load(&c->rank);
  struct blocks b = {.what = "the send buffer", .p = send, .counts = counts, .displs = displs};
  struct hccl_item item = {.kind = HCCL_ITEM_CALL, .func = HCCL_REDUCE_SCATTER_V, .comm = comm, .id = hccl_number(c, comm),
                           .send = send, .recv = recv};
  struct hccl_extra extra = {0};
  ncclResult_t e = known(c, comm, who, type, stream, &item, &nranks);
  if (e == ncclSuccess) e = hccl_redop_use(c, comm, who, op, &item, &extra.factor);
  if (e != ncclSuccess) return e;
  size_t size = hccl_type_size(item.type);
  e = measure(&b, comm, who, nranks, size);
  if (e == ncclSuccess && counts[rank] > 0) {
    e = hccl_check_pointer(comm, who, "the receive buffer", recv);
    if (e == ncclSuccess)
      e = hccl_check_overlap(comm, who, send, b.end, recv, counts[rank] * size, NULL, own(&b, rank, size));
  }
  item.count = b.total, item.rcounts = counts, item.rdispls = b.displs, item.nranks = nranks;
  if (e == ncclSuccess) e = hccl_start(&item, &extra);
  free(b.packed);
  return e;
}

static ncclResult_t all_to_all_v(struct blocks* s, struct blocks* r, int type, ncclComm_t comm, cudaStream_t stream) {
  static const char who[] = "hcclAlltoAllV";
  struct hccl_comm* c = hccl_need(comm, who);
  int nranks;
  if (c == NULL) return ncclInvalidArgument;
  struct hccl_item item = {.kind = HCCL_ITEM_CALL, .func = HCCL_ALL_TO_ALL_V, .comm = comm, .id = hccl_number(c, comm)};
  ncclResult_t e = known(c, comm, who, type, stream, &item, &nranks);
  if (e != ncclSuccess) return e;
  size_t size = hccl_type_size(item.type);
  e = measure(s, comm, who, nranks, size);
  if (e == ncclSuccess) e = measure(r, comm, who, nranks, size);
  if (e == ncclSuccess && s->end > 0 && r->end > 0) e = hccl_check_overlap(comm, who, s->p, s->end, r->p, r->end, NULL, NULL);
  item.send = s->p, item.recv = (void*)r->p, item.nranks = nranks;
  item.scounts = s->counts, item.sdispls = s->displs, item.rcounts = r->counts, item.rdispls = r->displs;
  return e == ncclSuccess ? hccl_start(&item, NULL) : e;
}

ncclResult_t hcclAllGatherV(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, ncclDataType_t type,
                            ncclComm_t comm, cudaStream_t stream) {
  return hccl_noted(gather_v(send, recv, counts, displs, (int)type, comm, stream));
}

ncclResult_t hcclReduceScatterV(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, ncclDataType_t type,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return hccl_noted(reduce_v(send, recv, counts, displs, (int)type, (int)op, comm, stream));
}

ncclResult_t hcclAlltoAllV(const void* send, const uint64_t* send_counts, const uint64_t* send_displs, void* recv,
                           const uint64_t* recv_counts, const uint64_t* recv_displs, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  struct blocks s = {.what = "the send buffer", .p = send, .counts = send_counts, .displs = send_displs};
  struct blocks r = {.what = "the receive buffer", .p = recv, .counts = recv_counts, .displs = recv_displs};
  ncclResult_t e = hccl_noted(all_to_all_v(&s, &r, (int)type, comm, stream));
  free(s.packed);
  free(r.packed);
  return e;
}

