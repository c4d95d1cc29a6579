#include "versioned.h"
#include "error.h"
#include <string.h>

struct head { // what all of them begin with
  size_t size;
  unsigned magic, version;
};

enum { LARGEST = 1024, FIRST_VERSION = 21400 }; // no header will have more; structs with a size came with 2.14

static int is_pointer(const struct hccl_member* m) { return m->least > m->most; }

// has says whether the caller's struct holds the member.
static int has(const struct head* h, const struct hccl_member* m) {
  return h->version >= m->since && m->offset + (is_pointer(m) ? sizeof(void*) : sizeof(int)) <= h->size;
}

static const struct hccl_member* member(const struct hccl_layout* l, size_t offset) {
  for (size_t k = 0; k < l->count; k++)
    if (l->members[k].offset == offset) return &l->members[k];
  return NULL;
}

int hccl_int_at(const void* p, const struct hccl_layout* l, size_t offset) {
  int value;
  const struct hccl_member* m = member(l, offset);
  if (m == NULL || !has(p, m)) return NCCL_CONFIG_UNDEF_INT;
  memcpy(&value, (const char*)p + offset, sizeof value);
  return value;
}

void* hccl_pointer_at(const void* p, const struct hccl_layout* l, size_t offset) {
  void* value;
  const struct hccl_member* m = member(l, offset);
  if (m == NULL || !has(p, m)) return NULL;
  memcpy(&value, (const char*)p + offset, sizeof value);
  return value;
}

static ncclResult_t check_head(const struct head* h, const struct hccl_layout* l, ncclComm_t comm, const char* who) {
  if (h->size < l->first || h->size > LARGEST)
    return hccl_fail(comm, ncclInvalidArgument,
                     "%s: %s has size %zu, which no header gives it (%zu to %zu): start from its initializer", who, l->name,
                     h->size, l->first, l->last);
  if (h->magic != l->magic)
    return hccl_fail(comm, ncclInvalidArgument, "%s: %s has magic 0x%x in place of 0x%x: start from its initializer", who, l->name,
                     h->magic, l->magic);
  if (h->version < FIRST_VERSION)
    return hccl_fail(comm, ncclInvalidArgument, "%s: %s has version %u, but is younger than that: start from its initializer",
                     who, l->name, h->version);
  return ncclSuccess;
}

static ncclResult_t check_member(const void* p, const struct hccl_layout* l, const struct hccl_member* m, ncclComm_t comm,
                                 const char* who) {
  int value = is_pointer(m) ? NCCL_CONFIG_UNDEF_INT : hccl_int_at(p, l, m->offset);
  if (value == NCCL_CONFIG_UNDEF_INT || (value >= m->least && value <= m->most)) return ncclSuccess;
  return hccl_fail(comm, ncclInvalidArgument, "%s: %s of %s is %d; it may be %d to %d, or NCCL_CONFIG_UNDEF_INT", who, m->name,
                   l->name, value, m->least, m->most);
}

// The last word of a longer struct may be padding, as may today's: both may hold anything.
static ncclResult_t check_tail(const void* p, const struct hccl_layout* l, ncclComm_t comm, const char* who) {
  const struct head* h = p;
  for (size_t at = l->last; at + 2 * sizeof(int) <= h->size; at += sizeof(int)) {
    int word;
    memcpy(&word, (const char*)p + at, sizeof word);
    if (word != 0 && word != NCCL_CONFIG_UNDEF_INT)
      return hccl_fail(comm, ncclInvalidArgument, "%s: %s of version %u sets a member at offset %zu that HCCL (%d) does not know",
                       who, l->name, h->version, at, NCCL_VERSION_CODE);
  }
  return ncclSuccess;
}

ncclResult_t hccl_check_struct(const void* p, const struct hccl_layout* l, ncclComm_t comm, const char* who) {
  ncclResult_t e = check_head(p, l, comm, who);
  for (size_t k = 0; k < l->count && e == ncclSuccess; k++) e = check_member(p, l, &l->members[k], comm, who);
  return e == ncclSuccess ? check_tail(p, l, comm, who) : e;
}
