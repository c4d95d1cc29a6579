/* The calls that read settings. */
#include "test.h"

int main(void) {
  ncclParamHandle_t size, text;
  const char *value, **keys;
  int64_t i64 = 0;
  uint64_t u64 = 0;
  int16_t i16 = 0;
  int32_t i32 = 0;
  int n = 0, found = 0;
  char room[64];
  setenv("NCCL_BUFFSIZE", "4M", 1);
  setenv("NCCL_SOCKET_IFNAME", "^docker0", 1);
  MUST(ncclParamBind(&size, "NCCL_BUFFSIZE"));
  MUST(ncclParamGetI64(size, &i64));
  MUST(ncclParamGetU64(size, &u64));
  MUST(ncclParamGetI32(size, &i32));
  CHECK(i64 == 4 << 20 && u64 == 4u << 20 && i32 == 4 << 20, "%lld", (long long)i64);
  REFUSED("fit", NULL, ncclParamGetI16(size, &i16));
  MUST(ncclParamGet(size, room, sizeof room, &n));
  CHECK(n == 8 && memcmp(room, &i64, 8) == 0, "%d bytes", n);
  REFUSED("small", NULL, ncclParamGet(size, room, 4, &n));
  setenv("NCCL_BUFFSIZE", "many", 1); /* no number: the default stays */
  MUST(ncclParamGetI64(size, &i64));
  CHECK(i64 == 4194304, "%lld", (long long)i64);
  MUST(ncclParamBind(&text, "NCCL_SOCKET_IFNAME"));
  MUST(ncclParamGetStr(text, &value));
  CHECK(strcmp(value, "^docker0") == 0, "\"%s\"", value);
  MUST(ncclParamGet(text, room, sizeof room, &n));
  CHECK(n == 9 && strcmp(room, "^docker0") == 0, "\"%s\"", room);
  REFUSED("text", NULL, ncclParamGetI64(text, &i64));
  MUST(ncclParamGetParameter("NCCL_SOCKET_IFNAME", &value, &n));
  CHECK(n == 8 && strcmp(value, "^docker0") == 0, "%d \"%s\"", n, value);
  REFUSED("no setting", NULL, ncclParamBind(&text, "NCCL_NO_SUCH_THING"));
  REFUSED("key is NULL", NULL, ncclParamBind(&text, NULL));
  REFUSED("handle", NULL, ncclParamGetI64((ncclParamHandle_t)(void*)room, &i64));
  REFUSED("handle", NULL, ncclParamGetStr(NULL, &value));
  MUST(ncclParamGetAllParameterKeys(&keys, &n));
  for (int k = 0; k < n; k++) found += !strcmp(keys[k], "NCCL_BUFFSIZE");
  CHECK(found == 1 && n > 10, "%d keys", n);
  CHECK(fake() == NULL, "settings have opened the core");
  return test_end();
}
