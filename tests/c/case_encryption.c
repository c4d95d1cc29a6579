/* Encryption between hosts that are network namespaces, and the call that asks for it.

   case_encryption data FILE HOST...    data with PATTERN go from host to host by every operation that moves them; the id goes to FILE
   case_encryption refused WORD HOST... no rank gets a communicator, and the text of each names WORD
   case_encryption call                 what ncclSetEncryption takes, and until when

   HOST is the name of a namespace, or NAME;VARIABLE=VALUE;... with settings of its own. A rank stands on each. */
#include "case.h"

#include <fcntl.h>

enum { BYTES = 200000, LEAST = 32 };
static const char PATTERN[] = "data of a user, which nobody else should read";
static char** hosts;
static const char* word;

static void enter_host(void) {
  char text[1000], path[300], *rest = NULL;
  snprintf(text, sizeof text, "%s", hosts[me]);
  snprintf(path, sizeof path, "/run/netns/%.200s", strtok_r(text, ";", &rest));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) FAULT("%s cannot be entered: %s", path, strerror(errno));
  close(fd);
  for (char* set; (set = strtok_r(NULL, ";", &rest)) != NULL;) putenv(strdup(set));
}

static ncclResult_t join(ncclComm_t* comm) {
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet();
  return ncclCommInitRank(comm, ranks, job->id[0], me);
}

static void fill(char* b, size_t n) {
  for (size_t k = 0; k < n; k++) b[k] = PATTERN[k % (sizeof PATTERN - 1)];
}

static void data_body(void) {
  enter_host();
  ncclComm_t comm, part;
  char *in = malloc(BYTES), *out = malloc((size_t)ranks * BYTES), *want = malloc(BYTES);
  MUST(NULL, join(&comm));
  if (me == 0) {
    FILE* f = fopen(word, "wb");
    CHECK(f != NULL && fwrite(&job->id[0], sizeof job->id[0], 1, f) == 1 && fclose(f) == 0, "cannot write %s", word);
  }
  fill(in, BYTES), fill(want, BYTES);
  MUST(comm, ncclAllGather(in, out, BYTES, ncclInt8, comm, NULL));
  CHECK(memcmp(out + (size_t)(ranks - 1 - me) * BYTES, want, BYTES) == 0, "gathered data differ");
  if (me != 0) memset(in, 0, BYTES);
  MUST(comm, ncclBroadcast(in, in, BYTES, ncclInt8, 0, comm, NULL));
  CHECK(memcmp(in, want, BYTES) == 0, "broadcast data differ");
  MUST(comm, ncclBroadcast(in, out, sizeof PATTERN, ncclInt8, 1, comm, NULL)); /* one small frame */
  MUST(comm, ncclCommSplit(comm, 0, -me, &part, NULL));
  MUST(part, ncclAllReduce(want, out, BYTES, ncclUint8, ncclMax, part, NULL));
  CHECK(memcmp(out, want, BYTES) == 0, "reduced data differ");
  MUST(part, ncclCommDestroy(part));
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

static void refused_body(void) {
  enter_host();
  ncclComm_t comm = NULL;
  double start = now();
  WANT(ncclInvalidUsage, NULL, join(&comm));
  WITHIN(20, start);
  SAYS(NULL, word);
  SAYS(NULL, "HCCL_ENCRYPTION_KEY_FILE");
  meet();
}

static ncclResult_t give(const char* psk) {
  ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  config.mode = psk != NULL ? NCCL_ENCRYPTION_MODE_PSK : NCCL_ENCRYPTION_MODE_NONE, config.psk = psk;
  return ncclSetEncryption(&config);
}

static void call_body(void) {
  static const char key[] = "a key of 32 bytes or more for all ranks", other[] = "another key of 32 bytes or more, too";
  char small[LEAST] = "";
  ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  ncclComm_t comm;
  memset(small, 's', LEAST - 1);
  MUST(NULL, ncclSetEncryption(NULL));
  WANT(ncclInvalidArgument, NULL, give(small));
  SAYS(NULL, "32");
  CHECK(strstr(ncclGetLastError(NULL), "sss") == NULL, "the text tells the key: %s", ncclGetLastError(NULL));
  config.mode = NCCL_ENCRYPTION_MODE_PSK;
  WANT(ncclInvalidArgument, NULL, ncclSetEncryption(&config));
  config.mode = 2, config.psk = key;
  WANT(ncclInvalidArgument, NULL, ncclSetEncryption(&config));
  config.mode = NCCL_ENCRYPTION_MODE_PSK, config.magic++;
  WANT(ncclInvalidArgument, NULL, ncclSetEncryption(&config));
  MUST(NULL, give(other));
  MUST(NULL, give(key)); /* what it replaces never counts */
  MUST(NULL, join(&comm));
  MUST(NULL, give(key));
  WANT(ncclInvalidUsage, NULL, give(other));
  SAYS(NULL, "before the first communicator");
  WANT(ncclInvalidUsage, NULL, give(NULL));
  float x = 1;
  MUST(comm, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, NULL));
  CHECK(x == (float)ranks, "the sum is %g", (double)x);
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "call") == 0) return job_run(2, 40, call_body) != 0;
  if (argc < 5) return 2;
  word = argv[2], hosts = argv + 3;
  if (strcmp(argv[1], "data") == 0) return job_run(argc - 3, 40, data_body) != 0;
  if (strcmp(argv[1], "refused") == 0) return job_run(argc - 3, 40, refused_body) != 0;
  return 2;
}
