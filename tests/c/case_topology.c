/* Files of topologies and of rings: those that are written, those that are gone by, and those that cannot be used; and a sweep of sizes,
   for whoever sets what and looks at what is said. */
#include "case_ops.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char folder[] = "/tmp/case-topology-XXXXXX";
static char topo[100], graph[100], wrong[100];

/* The file's text, NULL where there is none. */
static char* text_of(const char* name) {
  struct stat st;
  FILE* f = fopen(name, "r");
  if (f == NULL || fstat(fileno(f), &st) != 0) return NULL;
  char* text = calloc(1, (size_t)st.st_size + 1);
  CHECK(fread(text, 1, (size_t)st.st_size, f) == (size_t)st.st_size, "%s cannot be read", name);
  fclose(f);
  return text;
}

static int count(const char* text, const char* word) {
  int n = 0;
  for (; text != NULL && (text = strstr(text, word)) != NULL; text++) n++;
  return n;
}

static void used(void) {
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 1));
  MUST(comm, sum_checked(comm, 300000));
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

/* ---- both files are there when the communicator is made, written by the rank that is named ---- */

static void dump_body(void) {
  setenv("NCCL_TOPO_DUMP_FILE", topo, 1), setenv("NCCL_GRAPH_DUMP_FILE", graph, 1);
  setenv("NCCL_TOPO_DUMP_FILE_RANK", ranks > 1 ? "1" : "0", 1), setenv("NCCL_GRAPH_DUMP_FILE_RANK", ranks > 2 ? "2" : "0", 1);
  ncclComm_t comm = comm_new();
  if (me == (ranks > 1 ? 1 : 0)) {
    char* text = text_of(topo);
    CHECK(count(text, "<system") == 1 && count(text, "<cpu ") > 0, "rank %d of %d has written no topology: %.200s", me, ranks, text);
    free(text);
  }
  if (me == (ranks > 2 ? 2 : 0)) {
    char* text = text_of(graph);
    CHECK(count(text, "<graph ") == 1 && count(text, "<channel>") == 1 && count(text, "<gpu ") == ranks,
          "rank %d of %d has written no ring of all: %.400s", me, ranks, text);
    free(text);
  }
  MUST(comm, ncclCommDestroy(comm));
}

/* ---- what was written is gone by, also by parts of the communicator ---- */

static void again_body(void) {
  setenv("NCCL_TOPO_FILE", topo, 1), setenv("NCCL_GRAPH_FILE", graph, 1);
  setenv("NCCL_ALGO", "ring", 1);
  ncclComm_t comm = comm_new(), part = NULL;
  MUST(comm, sum_checked(comm, 300000));
  MUST(comm, ncclCommSplit(comm, me % 2, -me, &part, NULL));
  MUST(part, sum_checked(part, 300000));
  meet();
  MUST(part, ncclCommDestroy(part));
  MUST(comm, ncclCommDestroy(comm));
}

/* ---- files that cannot be used or written cost nobody a communicator ---- */

static const char* const bad[][2] = {{"NCCL_TOPO_FILE", NULL}, {"NCCL_GRAPH_FILE", NULL}, {"HCCL_COST_FILE", NULL},
  {"NCCL_TOPO_FILE", "/dev/null"}, {"NCCL_GRAPH_FILE", "/nowhere/a"}, {"HCCL_COST_FILE", "/nowhere/a"},
  {"NCCL_TOPO_DUMP_FILE", "/nowhere/a"}, {"NCCL_GRAPH_DUMP_FILE", "/nowhere/a"}, {"HCCL_TOPO_SCOPE", "none"}};
enum { BAD = sizeof bad / sizeof bad[0] };
static int which;

static void bad_body(void) {
  NOTE("%s=%s", bad[which][0], bad[which][1] == NULL ? wrong : bad[which][1]);
  setenv(bad[which][0], bad[which][1] == NULL ? wrong : bad[which][1], 1);
  used();
}

static int all(void) {
  int faults = 0;
  for (int n = 1; n <= 4; n++) {
    unlink(topo), unlink(graph);
    faults += job_run(n, 30, dump_body);
  }
  faults += job_run(4, 30, again_body);
  FILE* f = fopen(wrong, "w");
  if (f == NULL) return 1;
  fputs("<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" nchannels=\"1\"><channel><gpu dev=\"7\"/></channel>", f);
  fclose(f);
  for (which = 0; which < BAD; which++) faults += job_run(3, 30, bad_body);
  return faults;
}

/* ---- sweep N [NAMESPACE FILE]...: all operations in growing sizes, a host for each network namespace, with a topology file of its own
   ("-": none) ---- */

static char** host_words;
static int host_count;

/* With a /sys that shows this network, as on a host. */
static void enter_host(int h) {
  char path[300];
  snprintf(path, sizeof path, "/run/netns/%.200s", host_words[2 * h]);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) FAULT("%s cannot be entered: %s", path, strerror(errno));
  close(fd);
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_SLAVE | MS_REC, NULL) != 0 ||
      mount("host", "/sys", "sysfs", MS_RDONLY, NULL) != 0)
    FAULT("no /sys of %s: %s", path, strerror(errno));
  if (strcmp(host_words[2 * h + 1], "-") != 0) setenv("NCCL_TOPO_FILE", host_words[2 * h + 1], 1);
}

static void sweep_body(void) {
  if (host_count > 0) enter_host(me * host_count / ranks);
  ncclComm_t comm = comm_new();
  double step = times(0, 1) ? 1.3 : 2.7, top = times(128 << 10, 4 << 20);
  for (double n = 2; n <= top; n *= step) ops_checked(comm, (size_t)n);
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

static int on_hosts(int argc, char** argv, void (*body)(void)) {
  int n = atoi(argv[0]);
  host_words = argv + 1, host_count = (argc - 1) / 2;
  return n < 1 || n > RANKS || argc % 2 == 0 || job_run(n, times(60, 900), body) != 0;
}

/* ---- once N [NAMESPACE FILE]...: one all-reduce, on hosts as above ---- */

static void once_body(void) {
  if (host_count > 0) enter_host(me * host_count / ranks);
  ncclComm_t comm = comm_new();
  MUST(comm, sum_checked(comm, 262144));
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

/* ---- few: all operations in three sizes, by 1 to 5 ranks ---- */

static void few_body(void) {
  ncclComm_t comm = comm_new();
  for (size_t n = 2; n <= (size_t)times(20000, 2000000); n *= 100) ops_checked(comm, n);
  meet();
  MUST(comm, ncclCommDestroy(comm));
}

static int few(void) {
  int faults = 0;
  for (int n = 1; n <= 5; n++) faults += job_run(n, times(30, 300), few_body);
  return faults != 0;
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "sweep") == 0) return on_hosts(argc - 2, argv + 2, sweep_body);
  if (argc > 2 && strcmp(argv[1], "once") == 0) return on_hosts(argc - 2, argv + 2, once_body);
  if (argc == 2 && strcmp(argv[1], "few") == 0) return few();
  if (argc != 2 || strcmp(argv[1], "files") != 0) {
    fprintf(stderr, "no case %s\n", argc > 1 ? argv[1] : "");
    return 2;
  }
  if (mkdtemp(folder) == NULL) return 1;
  snprintf(topo, sizeof topo, "%s/topo.xml", folder), snprintf(graph, sizeof graph, "%s/graph.xml", folder);
  snprintf(wrong, sizeof wrong, "%s/wrong.xml", folder);
  int faults = all();
  unlink(topo), unlink(graph), unlink(wrong);
  return rmdir(folder) != 0 || faults != 0;
}
