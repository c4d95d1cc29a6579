// HCCL's own forms with blocks of different sizes: counts and displacements in elements, one per rank, 64 bits. A NULL for the
// displacements means blocks that follow each other; the core is always given both arrays.
#include "call.h"
#include "check.h"
#include "error.h"
#include "redop.h"
#include "stream.h"
#include <stdlib.h>

struct blocks { // a buffer that holds one block for each rank
  const char* what;
  const void* p;
  const uint64_t *counts, *displs;
  uint64_t total; // elements of all blocks
  size_t end;     // bytes from p to the end of the last
};

// measure fills in *packed, and makes displs of it, where the caller gave none.
static ncclResult_t measure(struct blocks* b, const struct hccl_call* a, int nranks, size_t size, uint64_t** packed) {
  if (b->counts == NULL) return hccl_fail(a->comm, ncclInvalidArgument, "%s: the counts of %s are NULL", a->who, b->what);
  if (b->displs == NULL) b->displs = *packed = malloc((size_t)nranks * sizeof **packed);
  if (b->displs == NULL) return hccl_fail(a->comm, ncclSystemError, "%s: no memory for %d displacements", a->who, nranks);
  for (int r = 0; r < nranks; r++) {
    size_t end;
    if (*packed != NULL) (*packed)[r] = b->total;
    if (b->counts[r] > UINT64_MAX - b->displs[r] || b->counts[r] > UINT64_MAX - b->total)
      return hccl_fail(a->comm, ncclInvalidArgument, "%s: count %llu of rank %d in %s does not fit into memory", a->who,
                       (unsigned long long)b->counts[r], r, b->what);
    b->total += b->counts[r];
    ncclResult_t e = hccl_check_extent(a->comm, a->who, b->p, b->displs[r] + b->counts[r], size, 1, &end);
    if (e != ncclSuccess) return e;
    if (b->counts[r] > 0 && end > b->end) b->end = end;
  }
  return b->end > 0 ? hccl_check_pointer(a->comm, a->who, b->what, b->p) : ncclSuccess;
}

static const char* own(const struct blocks* b, int rank, size_t size) { return (const char*)b->p + b->displs[rank] * size; }

static ncclResult_t gather(const struct hccl_call* a, struct hccl_item* item, struct hccl_packed* packed, int rank, size_t size) {
  struct blocks b = {.what = "the receive buffer", .p = a->recv, .counts = a->rcounts, .displs = a->rdispls};
  ncclResult_t e = measure(&b, a, item->nranks, size, &packed->recv);
  item->count = b.total, item->rcounts = b.counts, item->rdispls = b.displs;
  if (e != ncclSuccess || b.counts[rank] == 0) return e;
  e = hccl_check_pointer(a->comm, a->who, "the send buffer", a->send);
  if (e != ncclSuccess) return e;
  return hccl_check_overlap(a->comm, a->who, a->send, b.counts[rank] * size, a->recv, b.end, own(&b, rank, size), NULL);
}

static ncclResult_t reduce_scatter(const struct hccl_call* a, struct hccl_item* item, struct hccl_packed* packed, int rank,
                                   size_t size) {
  struct blocks b = {.what = "the send buffer", .p = a->send, .counts = a->rcounts, .displs = a->rdispls};
  ncclResult_t e = measure(&b, a, item->nranks, size, &packed->recv);
  item->count = b.total, item->rcounts = b.counts, item->rdispls = b.displs;
  if (e != ncclSuccess || b.counts[rank] == 0) return e;
  e = hccl_check_pointer(a->comm, a->who, "the receive buffer", a->recv);
  if (e != ncclSuccess) return e;
  return hccl_check_overlap(a->comm, a->who, a->send, b.end, a->recv, b.counts[rank] * size, NULL, own(&b, rank, size));
}

static ncclResult_t all_to_all(const struct hccl_call* a, struct hccl_item* item, struct hccl_packed* packed, size_t size) {
  struct blocks s = {.what = "the send buffer", .p = a->send, .counts = a->scounts, .displs = a->sdispls};
  struct blocks r = {.what = "the receive buffer", .p = a->recv, .counts = a->rcounts, .displs = a->rdispls};
  ncclResult_t e = measure(&s, a, item->nranks, size, &packed->send);
  if (e == ncclSuccess) e = measure(&r, a, item->nranks, size, &packed->recv);
  item->count = 0, item->scounts = s.counts, item->sdispls = s.displs, item->rcounts = r.counts, item->rdispls = r.displs;
  if (e != ncclSuccess || s.end == 0 || r.end == 0) return e;
  return hccl_check_overlap(a->comm, a->who, s.p, s.end, r.p, r.end, NULL, NULL);
}

ncclResult_t hccl_fill_vector(const struct hccl_call* a, struct hccl_comm* c, struct hccl_item* item, struct hccl_extra* extra,
                              struct hccl_packed* packed) {
  int rank = atomic_load(&c->rank);
  item->nranks = atomic_load_explicit(&c->nranks, memory_order_acquire);
  if (item->nranks == 0) // the arrays could not even be read
    return hccl_fail(a->comm, ncclInvalidUsage, "%s: the communicator is still being made: ask ncclCommGetAsyncError first", a->who);
  ncclResult_t e = hccl_take_stream(a->comm, a->who, a->stream, &item->stream);
  if (e == ncclSuccess) e = hccl_take_type(a->comm, a->who, a->type, &item->type);
  if (e == ncclSuccess && a->func == HCCL_REDUCE_SCATTER_V) e = hccl_redop_use(c, a->comm, a->who, a->op, item, &extra->factor);
  if (e != ncclSuccess) return e;
  size_t size = hccl_type_size(item->type);
  if (a->func == HCCL_ALL_GATHER_V) return gather(a, item, packed, rank, size);
  return a->func == HCCL_REDUCE_SCATTER_V ? reduce_scatter(a, item, packed, rank, size) : all_to_all(a, item, packed, size);
}

ncclResult_t hcclAllGatherV(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, ncclDataType_t type,
                            ncclComm_t comm, cudaStream_t stream) {
  return hccl_call(&(struct hccl_call){.func = HCCL_ALL_GATHER_V, .who = "hcclAllGatherV", .send = send, .recv = recv,
                                       .rcounts = counts, .rdispls = displs, .type = (int)type, .comm = comm, .stream = stream});
}

ncclResult_t hcclReduceScatterV(const void* send, void* recv, const uint64_t* counts, const uint64_t* displs, ncclDataType_t type,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return hccl_call(&(struct hccl_call){.func = HCCL_REDUCE_SCATTER_V, .who = "hcclReduceScatterV", .send = send, .recv = recv,
                                       .rcounts = counts, .rdispls = displs, .type = (int)type, .op = (int)op, .comm = comm,
                                       .stream = stream});
}

ncclResult_t hcclAlltoAllV(const void* send, const uint64_t* send_counts, const uint64_t* send_displs, void* recv,
                           const uint64_t* recv_counts, const uint64_t* recv_displs, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return hccl_call(&(struct hccl_call){.func = HCCL_ALL_TO_ALL_V, .who = "hcclAlltoAllV", .send = send, .scounts = send_counts,
                                       .sdispls = send_displs, .recv = recv, .rcounts = recv_counts, .rdispls = recv_displs,
                                       .type = (int)type, .comm = comm, .stream = stream});
}
