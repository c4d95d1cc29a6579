/* Networks as users have them: ranks on hosts that are network namespaces, with what is wrong there made by who starts this.

   case_network sums COUNT TIMES RANKS HOST...        checked all-reduces
   case_network fault COUNT COMMAND RANKS HOST...     the same while rank 0 breaks its network by a shell command
   case_network lost COUNT COMMAND RANKS HOST...      likewise, for good: every rank has an error that names another one
   case_network ops COUNT TIMES RANKS HOST...         every operation, at some counts up to COUNT
   case_network unmet COUNT WORD RANKS HOST...        ranks that do not meet: every rank has an error, and one says WORD

   HOST is the name of a namespace, or NAME;VARIABLE=VALUE;... with settings of its own. Ranks stand on the hosts in order. */
#include "case_ops.h"

#include <fcntl.h>

enum { BEFORE = 5, AFTER = 20 };
static char** hosts;
static int host_count;
static size_t count;
static int rounds;
static const char* command;

static void enter_host(void) {
  char text[1000], path[300], *rest = NULL;
  snprintf(text, sizeof text, "%s", hosts[me * host_count / ranks]);
  snprintf(path, sizeof path, "/run/netns/%.200s", strtok_r(text, ";", &rest));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) FAULT("%s cannot be entered: %s", path, strerror(errno));
  close(fd);
  for (char* set; (set = strtok_r(NULL, ";", &rest)) != NULL;) putenv(strdup(set));
}

static void sums_body(void) {
  enter_host();
  ncclComm_t comm = comm_new();
  for (int k = 0; k < rounds; k++) MUST(comm, sum_checked(comm, count));
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

static void break_network(void) {
  meet();
  if (me == 0) CHECK(system(command) == 0, "%s failed", command);
}

static void fault_body(void) {
  enter_host();
  ncclComm_t comm = comm_new();
  for (int k = 0; k < BEFORE; k++) MUST(comm, sum_checked(comm, count));
  break_network();
  for (int k = 0; k < AFTER; k++) MUST(comm, sum_checked(comm, count));
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

static void lost_body(void) {
  enter_host();
  ncclComm_t comm = comm_new();
  float *in = floats(count), *out = floats(count);
  for (int k = 0; k < BEFORE; k++) MUST(comm, sum_checked(comm, count));
  break_network();
  ncclResult_t result = ncclSuccess;
  for (int k = 0; k < AFTER && result == ncclSuccess; k++)
    result = ncclAllReduce(in, out, count, ncclFloat32, ncclSum, comm, NULL);
  CHECK(result != ncclSuccess, "%d all-reduces by a network that is gone", AFTER);
  SAYS(comm, me == 0 ? "rank 1" : "rank 0");
  meet();
  MUST(comm, ncclCommAbort(comm));
}

static void ops_body(void) {
  const size_t n = (size_t)ranks, counts[] = {1, n, n + 1, 2 * n - 1, count};
  enter_host();
  ncclComm_t comm = comm_new();
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) ops_checked(comm, counts[k]);
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

static void unmet_body(void) {
  ncclComm_t comm = NULL;
  enter_host();
  if (me == 0) MUST(NULL, ncclGetUniqueId(&job->id[0]));
  meet();
  ncclResult_t got = ncclCommInitRank(&comm, ranks, job->id[0], me);
  CHECK(got != ncclSuccess && got != ncclInProgress, "init over a network that lets nobody through gave %d", got);
  job->word[me][0] = strstr(ncclGetLastError(NULL), command) != NULL;
  meet();
  for (int r = 0; r < ranks; r++)
    if (job->word[r][0]) return;
  SAYS(NULL, command);
}

int main(int argc, char** argv) {
  static const struct { const char* name; void (*body)(void); } modes[] = {
    {"sums", sums_body}, {"fault", fault_body}, {"lost", lost_body}, {"ops", ops_body}, {"unmet", unmet_body}};
  if (argc < 6) return 2;
  count = strtoull(argv[2], NULL, 10), command = argv[3], rounds = atoi(argv[3]);
  hosts = argv + 5, host_count = argc - 5;
  int n = atoi(argv[4]);
  for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++)
    if (strcmp(argv[1], modes[k].name) == 0 && n > 0 && n <= RANKS) return job_run(n, 60, modes[k].body) != 0;
  return 2;
}
