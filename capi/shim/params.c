// Settings as programs may ask for them: what the environment or a settings file says, else the default of params_table.h. A value
// that the core would refuse counts as not set. A handle is the address of the setting's row in that table.
#include "../../internal/params/source.h"
#include "error.h"
#include "log.h"
#include "params_table.h"
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// number reads a whole number, with blanks around it as one likes.
static int number(const char* text, long long* out) {
  char* end;
  errno = 0;
  *out = strtoll(text, &end, 0);
  if (end == text || errno != 0) return 0;
  while (isspace((unsigned char)*end)) end++;
  return *end == 0;
}

static int seconds(const char* text, double* out) {
  char* end;
  *out = strtod(text, &end);
  if (end == text) return 0;
  while (isspace((unsigned char)*end)) end++;
  return *end == 0;
}

static int listed(const char* words, const char* value) {
  size_t n = strlen(value);
  for (const char* w = words; w != NULL; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL)
    if (strcspn(w, "|") == n && strncmp(w, value, n) == 0) return 1;
  return words == NULL;
}

// accepted says what the core's table says of a text (internal/params/forms.go).
static int accepted(const struct hccl_param* p, const char* text) {
  long long n;
  double s;
  switch (p->kind) {
    case HCCL_PARAM_INT:
    case HCCL_PARAM_BOOL: return number(text, &n) && n >= p->least && n <= p->most;
    case HCCL_PARAM_SECONDS: return seconds(text, &s) && s * 1e9 >= (double)p->least && s * 1e9 <= (double)p->most;
    case HCCL_PARAM_TEXT: return listed(p->words, text);
    case HCCL_PARAM_ANY: return 1;
  }
  return 0;
}

// in_effect finds the setting's value and its place; the default has neither file nor line, and place->value NULL.
static const char* in_effect(const struct hccl_param* p, struct hccl_setting* place) {
  if (hccl_setting_find(p->name, place) && (*place->value != 0 || p->empty_counts) && accepted(p, place->value)) return place->value;
  place->value = NULL;
  return p->preset;
}

static const char* value_of(const struct hccl_param* p) {
  struct hccl_setting place;
  return in_effect(p, &place);
}

// integer gives the setting as a number from least to most.
static ncclResult_t integer(ncclParamHandle_t handle, const void* out, const char* who, long long least, long long most,
                            long long* v) {
  const struct hccl_param* p = by_handle(handle);
  if (p == NULL) return wrong(who, "handle is none of ncclParamBind");
  if (out == NULL) return wrong(who, "value is NULL");
  if (p->kind == HCCL_PARAM_TEXT) return wrong(who, "the setting is a text");
  const char* text = value_of(p);
  if (*text == 0) return wrong(who, "the setting is not set and has no default");
  if (!number(text, v)) return wrong(who, "the value is no whole number: ask for its text");
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

// ncclParamGet copies a number as 64 bits and everything else as text.
HCCL_API(ncclResult_t, ncclParamGet, (ncclParamHandle_t handle, void* out, int size, int* length)) {
  static const char who[] = "ncclParamGet";
  const struct hccl_param* p = by_handle(handle);
  long long n = 0;
  if (p == NULL) return wrong(who, "handle is none of ncclParamBind");
  if (out == NULL) return wrong(who, "out is NULL");
  const char* text = value_of(p);
  int is_number = p->kind != HCCL_PARAM_TEXT && number(text, &n);
  size_t bytes = is_number ? sizeof n : strlen(text) + 1;
  if (size < 0 || (size_t)size < bytes) return wrong(who, "size is too small for the value");
  memcpy(out, is_number ? (const void*)&n : text, bytes);
  if (length != NULL) *length = (int)bytes;
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

// One line is one write: other ranks may share stderr.
static void dump(const struct hccl_param* p) {
  char line[1024];
  struct hccl_setting place;
  const char* value = in_effect(p, &place);
  int n = snprintf(line, sizeof line, "%s=%s", p->name, value);
  if (n < 0 || (size_t)n >= sizeof line - 1) n = sizeof line - 2;
  if (place.value != NULL && place.file == NULL) n += snprintf(line + n, sizeof line - (size_t)n, " (environment)");
  if (place.value != NULL && place.file != NULL) n += snprintf(line + n, sizeof line - (size_t)n, " (%s:%d)", place.file, place.line);
  if ((size_t)n > sizeof line - 1) n = sizeof line - 1;
  line[n] = '\n';
  hccl_say(line, (size_t)n + 1);
}

HCCL_API(void, ncclParamDumpAll, (void)) {
  for (int k = 0; k < HCCL_PARAMS; k++) dump(&hccl_params[k]);
}
