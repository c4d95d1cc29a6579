// Settings as programs may ask for them: what C's environment says, else the default of params_table.h. A handle is the address of
// the setting's row in that table.
#include "error.h"
#include "params_table.h"
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* value_of(const struct hccl_param* p) {
  const char* v = getenv(p->name);
  return v != NULL ? v : p->preset;
}

static const struct hccl_param* by_key(const char* key) {
  for (int k = 0; key != NULL && k < HCCL_PARAMS; k++)
    if (strcmp(hccl_params[k].name, key) == 0) return &hccl_params[k];
  return NULL;
}

static const struct hccl_param* by_handle(ncclParamHandle_t handle) {
  for (int k = 0; k < HCCL_PARAMS; k++)
    if ((const void*)handle == &hccl_params[k]) return &hccl_params[k];
  return NULL;
}

static ncclResult_t wrong(const char* who, const char* what) { return hccl_fail(NULL, ncclInvalidArgument, "%s: %s", who, what); }

// keep copies a value to where it stays until the thread's next call: the environment's own may go at any time.
static const char* keep(const char* value) {
  struct hccl_thread* t = hccl_thread();
  char* copy = t != NULL ? strdup(value) : NULL;
  if (copy == NULL) return NULL;
  free(t->value);
  return t->value = copy;
}

// number reads an integer with an optional K, M or G (binary); a boolean's words count as 0 and 1.
static int number(const char* text, long long* out) {
  static const char units[] = "KMG";
  char* end;
  errno = 0;
  long long v = strtoll(text, &end, 0);
  if (end == text || errno != 0) return 0;
  const char* unit = *end != 0 ? strchr(units, toupper((unsigned char)*end)) : NULL;
  if (unit != NULL) {
    int shift = 10 * (int)(unit - units + 1);
    if (v > (INT64_MAX >> shift) || v < -(INT64_MAX >> shift)) return 0;
    v *= 1LL << shift;
    end++;
  }
  *out = v;
  return *end == 0;
}

// integer gives the setting as a number from least to most; a value of the environment that is none counts as not set.
static ncclResult_t integer(ncclParamHandle_t handle, const void* out, const char* who, long long least, long long most,
                            long long* v) {
  const struct hccl_param* p = by_handle(handle);
  if (p == NULL) return wrong(who, "handle is none of ncclParamBind");
  if (out == NULL) return wrong(who, "value is NULL");
  if (p->kind == HCCL_PARAM_TEXT) return wrong(who, "the setting is a text");
  if (!number(value_of(p), v) && !number(p->preset, v)) return wrong(who, "the setting is no number");
  return *v >= least && *v <= most ? ncclSuccess : wrong(who, "the value does not fit into this type");
}

#define GET(suffix, ctype, least, most) \
  HCCL_API(ncclResult_t, ncclParamGet##suffix, (ncclParamHandle_t handle, ctype * value)) { \
    long long v; \
    ncclResult_t e = integer(handle, value, "ncclParamGet" #suffix, least, most, &v); \
    if (e == ncclSuccess) *value = (ctype)v; \
    return e; \
  }
GET(I8, int8_t, INT8_MIN, INT8_MAX)
GET(I16, int16_t, INT16_MIN, INT16_MAX)
GET(I32, int32_t, INT32_MIN, INT32_MAX)
GET(I64, int64_t, INT64_MIN, INT64_MAX)
GET(U8, uint8_t, 0, UINT8_MAX)
GET(U16, uint16_t, 0, UINT16_MAX)
GET(U32, uint32_t, 0, UINT32_MAX)
GET(U64, uint64_t, 0, INT64_MAX)

HCCL_API(ncclResult_t, ncclParamBind, (ncclParamHandle_t* handle, const char* key)) {
  const struct hccl_param* p = by_key(key);
  if (handle == NULL) return wrong("ncclParamBind", "handle is NULL");
  if (p == NULL) return wrong("ncclParamBind", key == NULL ? "key is NULL" : "no setting has this name");
  *handle = (ncclParamHandle_t)(uintptr_t)p;
  return ncclSuccess;
}

HCCL_API(ncclResult_t, ncclParamGetStr, (ncclParamHandle_t handle, const char** value)) {
  static const char who[] = "ncclParamGetStr";
  const struct hccl_param* p = by_handle(handle);
  if (p == NULL) return wrong(who, "handle is none of ncclParamBind");
  if (value == NULL) return wrong(who, "value is NULL");
  *value = keep(value_of(p));
  return *value != NULL ? ncclSuccess : hccl_fail(NULL, ncclSystemError, "%s: no memory", who);
}

HCCL_API(ncclResult_t, ncclParamGet, (ncclParamHandle_t handle, void* out, int size, int* length)) {
  static const char who[] = "ncclParamGet";
  const struct hccl_param* p = by_handle(handle);
  long long number = 0;
  if (p == NULL) return wrong(who, "handle is none of ncclParamBind");
  if (out == NULL) return wrong(who, "out is NULL");
  const char* text = p->kind == HCCL_PARAM_TEXT ? value_of(p) : NULL;
  ncclResult_t e = text == NULL ? integer(handle, out, who, INT64_MIN, INT64_MAX, &number) : ncclSuccess;
  size_t n = text != NULL ? strlen(text) + 1 : sizeof number;
  if (e != ncclSuccess) return e;
  if (size < 0 || (size_t)size < n) return wrong(who, "size is too small for the value");
  memcpy(out, text != NULL ? (const void*)text : &number, n);
  if (length != NULL) *length = (int)n;
  return ncclSuccess;
}

HCCL_API(ncclResult_t, ncclParamGetParameter, (const char* key, const char** value, int* length)) {
  static const char who[] = "ncclParamGetParameter";
  const struct hccl_param* p = by_key(key);
  if (p == NULL) return wrong(who, key == NULL ? "key is NULL" : "no setting has this name");
  if (value == NULL) return wrong(who, "value is NULL");
  *value = keep(value_of(p));
  if (*value == NULL) return hccl_fail(NULL, ncclSystemError, "%s: no memory", who);
  if (length != NULL) *length = (int)strlen(*value);
  return ncclSuccess;
}

static const char* names[HCCL_PARAMS];
static void list_names(void) {
  for (int k = 0; k < HCCL_PARAMS; k++) names[k] = hccl_params[k].name;
}

HCCL_API(ncclResult_t, ncclParamGetAllParameterKeys, (const char*** keys, int* count)) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (keys == NULL || count == NULL) return wrong("ncclParamGetAllParameterKeys", keys == NULL ? "keys is NULL" : "count is NULL");
  pthread_once(&once, list_names);
  *keys = names;
  *count = HCCL_PARAMS;
  return ncclSuccess;
}

HCCL_API(void, ncclParamDumpAll, (void)) {
  for (int k = 0; k < HCCL_PARAMS; k++) fprintf(stderr, "%s=%s\n", hccl_params[k].name, value_of(&hccl_params[k]));
}
