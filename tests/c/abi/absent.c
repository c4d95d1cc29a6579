/* Calls that are not there yet: they say so, in the thread's and the communicator's text, and once in the log. */
#include "test.h"

#define ABSENT(comm, name, call) \
  do { \
    WANT(ncclInvalidUsage, call); \
    CHECK(strstr(ncclGetLastError(comm), name) != NULL, "\"%s\" does not name %s", ncclGetLastError(comm), name); \
  } while (0)

static void all(ncclComm_t c) {
  ncclComm_t child;
  ncclWindow_t win;
  ncclUniqueId id;
  void* p;
  ncclLsaBarrierHandle_t barrier;
  memset(&id, 0, sizeof id);
  ABSENT(c, "ncclCommShrink", ncclCommShrink(c, NULL, 0, &child, NULL, NCCL_SHRINK_DEFAULT));
  ABSENT(c, "ncclCommGrow", ncclCommGrow(c, 3, &id, 0, &child, NULL));
  ABSENT(c, "ncclCommRevoke", ncclCommRevoke(c, NCCL_REVOKE_DEFAULT));
  ABSENT(c, "ncclCommSuspend", ncclCommSuspend(c, NCCL_SUSPEND_MEM));
  ABSENT(c, "ncclCommResume", ncclCommResume(c));
  ABSENT(c, "ncclCommWindowRegister", ncclCommWindowRegister(c, &p, 8, &win, NCCL_WIN_DEFAULT));
  ABSENT(c, "ncclSignal", ncclSignal(0, 0, 0, 0, c, NULL));
  ABSENT(c, "ncclWaitSignal", ncclWaitSignal(0, NULL, c, NULL));
  ABSENT(c, "ncclDevCommCreate", ncclDevCommCreate(c, NULL, NULL));
  ABSENT(NULL, "ncclLsaBarrierCreateRequirement", ncclLsaBarrierCreateRequirement(ncclTeamWorld(c), 1, &barrier, NULL));
  CHECK(ncclTeamLsa(c).nRanks == 0, "a team of nobody");
}

static void count_lines(const char* path) {
  char line[2048];
  int shrink = 0, refused = 0;
  FILE* f = fopen(path, "r");
  if (f == NULL) {
    CHECK(f != NULL, "no log in %s", path);
    return;
  }
  while (fgets(line, sizeof line, f) != NULL) {
    CHECK(strstr(line, "HCCL WARN ") != NULL && line[strlen(line) - 1] == '\n', "a line of another form: %s", line);
    shrink += strstr(line, "ncclCommShrink") != NULL;
    refused += strstr(line, "root 9") != NULL;
  }
  fclose(f);
  CHECK(shrink == 1, "ncclCommShrink is %d times in the log", shrink);
  CHECK(refused == 2, "a refused argument is %d times in the log, wanted each time", refused);
}

int main(int argc, char** argv) {
  char path[4096], pattern[4096];
  float x = 0;
  ncclComm_t c = make(2, 0);
  if (argc < 2) return 2;
  snprintf(pattern, sizeof pattern, "%s/absent.%%p.log", argv[1]);
  snprintf(path, sizeof path, "%s/absent.%d.log", argv[1], (int)getpid());
  setenv("NCCL_DEBUG", "loud", 1); /* set late, as programs do; what is no level counts as WARN */
  setenv("NCCL_DEBUG_FILE", pattern, 1);
  all(c);
  all(c);
  for (int k = 0; k < 2; k++) REFUSED("root 9", c, ncclBcast(&x, 1, ncclFloat, 9, c, NULL));
  count_lines(path);
  unlink(path);
  unsetenv("NCCL_DEBUG");
  all(c);
  CHECK(access(path, F_OK) != 0, "a log was written without NCCL_DEBUG");
  return test_end();
}
