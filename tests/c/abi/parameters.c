/* The calls that read settings. */
#include "test.h"

/* use_file writes a settings file and names it; path is the caller's to remove. */
static void use_file(char* path, const char* text) {
  int fd = mkstemp(path);
  CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s cannot be written", path);
  close(fd);
  setenv("NCCL_CONF_FILE", path, 1);
}

/* A settings file counts behind the environment, and names that do not act are known as well. */
static void files(void) {
  char path[] = "/tmp/hccl-parameters-XXXXXX";
  const char* value;
  ncclParamHandle_t p;
  int64_t v = 0;
  int n = 0;
  use_file(path, "# settings\r\nNCCL_BUFFSIZE = 8192\r\nNCCL_IB_TIMEOUT=22\nNCCL_MIN_CTAS=3\nHCCL_INIT_TIMEOUT=1.5\n"
                 "NCCL_IB_HCA='a b '\n");
  unsetenv("NCCL_BUFFSIZE");
  setenv("NCCL_MIN_CTAS", "4", 1);
  MUST(ncclParamBind(&p, "NCCL_BUFFSIZE"));
  MUST(ncclParamGetI64(p, &v));
  CHECK(v == 8192, "%lld", (long long)v);
  MUST(ncclParamBind(&p, "NCCL_MIN_CTAS"));
  MUST(ncclParamGetI64(p, &v));
  CHECK(v == 4, "the environment does not go first: %lld", (long long)v);
  MUST(ncclParamBind(&p, "NCCL_IB_TIMEOUT"));
  MUST(ncclParamGetI64(p, &v));
  CHECK(v == 22, "%lld", (long long)v);
  MUST(ncclParamGetParameter("NCCL_IB_HCA", &value, &n));
  CHECK(strcmp(value, "a b ") == 0, "\"%s\"", value);
  MUST(ncclParamGetParameter("HCCL_INIT_TIMEOUT", &value, &n));
  CHECK(strcmp(value, "1.5") == 0, "\"%s\"", value);
  MUST(ncclParamBind(&p, "HCCL_INIT_TIMEOUT"));
  REFUSED("whole number", NULL, ncclParamGetI64(p, &v));
  MUST(ncclParamBind(&p, "NCCL_IB_GID_INDEX"));
  REFUSED("not set", NULL, ncclParamGetI64(p, &v));
  unlink(path);
}

/* What the shim itself asks for before there is a core follows the file too: the log, and the ports of ids. */
static void own_settings(void) {
  char path[] = "/tmp/hccl-parameters-XXXXXX", log[] = "/tmp/hccl-parameters-log-XXXXXX", text[256], line[1024];
  ncclUniqueId id;
  int fd = mkstemp(log), year, month, day;
  snprintf(text, sizeof text, "NCCL_DEBUG=WARN\nNCCL_DEBUG_FILE=%s\nHCCL_PORT_RANGE=9-1\nNCCL_DEBUG_TIMESTAMP_FORMAT=<%%F>\n", log);
  use_file(path, text);
  CHECK(ncclGetUniqueId(&id) != ncclSuccess && strstr(ncclGetLastError(NULL), "HCCL_PORT_RANGE=9-1 is not a range") != NULL,
        "the file's range of ports does not count: \"%s\"", ncclGetLastError(NULL));
  ssize_t n = read(fd, line, sizeof line - 1);
  line[n > 0 ? n : 0] = 0;
  CHECK(sscanf(line, "<%d-%d-%d>", &year, &month, &day) == 3 && strstr(line, "HCCL WARN ") != NULL, "the log has \"%s\"", line);
  CHECK(strstr(line, "HCCL_PORT_RANGE") != NULL && strchr(line, '\n') == line + n - 1, "the log has \"%s\"", line);
  setenv("NCCL_CONF_FILE", "", 1);
  MUST(ncclGetUniqueId(&id));
  close(fd);
  unlink(log);
  unlink(path);
}

int main(void) {
  ncclParamHandle_t size, text;
  const char *value, **keys;
  int64_t i64 = 0;
  uint64_t u64 = 0;
  int16_t i16 = 0;
  int32_t i32 = 0;
  int n = 0, found = 0;
  char room[64];
  setenv("NCCL_BUFFSIZE", "131072", 1);
  setenv("NCCL_SOCKET_IFNAME", "^docker0", 1);
  MUST(ncclParamBind(&size, "NCCL_BUFFSIZE"));
  MUST(ncclParamGetI64(size, &i64));
  MUST(ncclParamGetU64(size, &u64));
  MUST(ncclParamGetI32(size, &i32));
  CHECK(i64 == 131072 && u64 == 131072u && i32 == 131072, "%lld", (long long)i64);
  REFUSED("fit", NULL, ncclParamGetI16(size, &i16));
  MUST(ncclParamGet(size, room, sizeof room, &n));
  CHECK(n == 8 && memcmp(room, &i64, 8) == 0, "%d bytes", n);
  REFUSED("small", NULL, ncclParamGet(size, room, 4, &n));
  static const char* const texts[] = {"many", "8192x", "8M", "-3", "0x7fffffffffffffffff", "", "1e4", "0x2000"};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) { /* what the core refuses: the default stays. The last is good */
    long long want = k + 1 == sizeof texts / sizeof *texts ? 8192 : 4194304;
    setenv("NCCL_BUFFSIZE", texts[k], 1);
    MUST(ncclParamGetI64(size, &i64));
    CHECK(i64 == want, "%s: %lld", texts[k], (long long)i64);
  }
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
  files();
  own_settings();
  CHECK(fake() == NULL, "settings have opened the core");
  return test_end();
}
