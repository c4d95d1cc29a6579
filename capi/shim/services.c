// What the core may ask of the shim (struct hccl_services of core_table.h).
#include "core.h"
#include "encryption.h"
#include "error.h"
#include "handle.h"
#include "meet.h"

static void error(struct ncclComm* comm, const char* text, int later) {
  if (text != NULL) hccl_keep_text(comm, text, later);
}

static void ready(struct ncclComm* comm, int rank, int nranks, void* hot) {
  struct hccl_comm* c = hccl_find(comm);
  if (c != NULL) {
    atomic_store(&c->rank, rank);
    atomic_store(&c->nranks, nranks);
  }
  hccl_set_hot(comm, hot);
}

const struct hccl_services hccl_services = {
  .version = HCCL_TABLE_VERSION,
  .error = error,
  .ready = ready,
  .fd_opened = hccl_fd_opened,
  .fd_closed = hccl_fd_closed,
  .path = hccl_path,
  .strangers = hccl_meet_strangers,
  .take_key = hccl_take_key,
};
