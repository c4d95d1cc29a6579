// What the root needs of its host: time, random bytes and a port.
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "meet_parts.h"
#include "../../internal/params/source.h"

int64_t hccl_meet_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// By system call, as glibc has the function only since 2.25; kernels before 3.17 have neither.
int hccl_meet_random(void* out, size_t n) {
  size_t got = 0;
  while (got < n) {
    long k = syscall(SYS_getrandom, (char*)out + got, n - got, 0);
    if (k > 0) got += (size_t)k;
    else if (errno != EINTR) break;
  }
  if (got == n) return 0;
  int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && got < n) {
    ssize_t k = read(fd, (char*)out + got, n - got);
    if (k > 0) got += (size_t)k;
    else if (k == 0 || errno != EINTR) break;
  }
  if (fd >= 0) close(fd);
  return got == n ? 0 : -1;
}

const char* hccl_meet_library(void) {
  Dl_info info;
  return dladdr((void*)(uintptr_t)&hccl_meet_library, &info) && info.dli_fname ? info.dli_fname : "an unknown file";
}

// --- Ports ---

static socklen_t socket_address(struct sockaddr_storage* s, const unsigned char* address, uint16_t port) {
  memset(s, 0, sizeof *s);
  if (address[0] == 4) {
    struct sockaddr_in* in = (struct sockaddr_in*)s;
    in->sin_family = AF_INET, in->sin_port = htons(port);
    memcpy(&in->sin_addr, address + 1, 4);
    return sizeof *in;
  }
  struct sockaddr_in6* in = (struct sockaddr_in6*)s;
  in->sin6_family = AF_INET6, in->sin6_port = htons(port);
  memcpy(&in->sin6_addr, address + 1, 16);
  return sizeof *in;
}

// A listener, or -1 with errno. SO_REUSEADDR lets a port be used whose old connections are in TIME_WAIT; one with a listener stays
// refused. The small segments, at both ends of what comes, pass wherever IPv6 does: some paths lose larger ones without a word.
static int listen_on(const unsigned char* address, uint16_t port) {
  struct sockaddr_storage s;
  socklen_t len = socket_address(&s, address, port);
  int one = 1, zero = 0, small = 1220, fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &small, sizeof small);
  if (s.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (bind(fd, (struct sockaddr*)&s, len) == 0 && listen(fd, 4096) == 0) return fd;
  int e = errno;
  close(fd);
  errno = e;
  return -1;
}

int hccl_meet_listen_at(const unsigned char* address, uint16_t port, char* err, size_t errlen) {
  int fd = listen_on(address, port), e = errno;
  if (fd < 0)
    snprintf(err, errlen, "rank 0 cannot listen at port %u of NCCL_COMM_ID: %s; choose an address of rank 0's host and a free port", port,
             strerror(e));
  errno = e; // the caller tries again while an earlier job gives the port up
  return fd;
}

static uint16_t bound_port(int fd) {
  struct sockaddr_storage s;
  socklen_t n = sizeof s;
  if (getsockname(fd, (struct sockaddr*)&s, &n) != 0) return 0;
  return ntohs(s.ss_family == AF_INET ? ((struct sockaddr_in*)&s)->sin_port : ((struct sockaddr_in6*)&s)->sin6_port);
}

// HCCL_PORT_RANGE=a-b; 0-0: any port. -1: not a range.
static int port_range(unsigned* low, unsigned* high) {
  const char* text = hccl_setting("HCCL_PORT_RANGE");
  char rest;
  *low = *high = 0;
  if (!text || !*text) return 0;
  return sscanf(text, "%u-%u%c", low, high, &rest) == 2 && *low > 0 && *low <= *high && *high <= 65535 ? 0 : -1;
}

int hccl_meet_listen(uint16_t* port, char* err, size_t errlen) {
  static const unsigned char any6[HCCL_ADDRESS_SIZE] = {6}, any4[HCCL_ADDRESS_SIZE] = {4};
  const char* family = hccl_setting("NCCL_SOCKET_FAMILY");
  unsigned low, high, start = 0;
  if (port_range(&low, &high) != 0) {
    snprintf(err, errlen, "HCCL_PORT_RANGE=%s is not a range of ports; write it as 42000-42031", hccl_setting("HCCL_PORT_RANGE"));
    return -1;
  }
  unsigned count = high - low + 1;
  hccl_meet_random(&start, sizeof start); // processes that start together do not all try the same ports first
  int fd = -1;
  for (unsigned k = 0; k < count && fd < 0; k++) {
    uint16_t p = (uint16_t)(low + (start % count + k) % count);
    if (!family || strcmp(family, "AF_INET") != 0) fd = listen_on(any6, p);
    if (fd < 0 && errno != EADDRINUSE) fd = listen_on(any4, p);
    if (fd < 0 && errno != EADDRINUSE && errno != EACCES) break;
  }
  if (fd >= 0) *port = bound_port(fd);
  else if (low)
    snprintf(err, errlen, "no port of HCCL_PORT_RANGE=%u-%u can be listened at (%s); each process needs one, and the maker of an id "
             "one more: widen the range", low, high, strerror(errno));
  else snprintf(err, errlen, "cannot listen for the other ranks: %s", strerror(errno));
  return fd;
}

// NCCL_COMM_ID: host:port, [address]:port.
int hccl_meet_resolve(const char* text, unsigned char* address, uint16_t* port, char* err, size_t errlen) {
  char host[256];
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  const char* colon = strrchr(text, ':');
  unsigned long p = colon ? strtoul(colon + 1, NULL, 10) : 0;
  size_t n = colon ? (size_t)(colon - text) : 0;
  if (n > 1 && text[0] == '[' && text[n - 1] == ']') text++, n -= 2;
  if (n == 0 || n >= sizeof host || p == 0 || p > 65535) {
    snprintf(err, errlen, "NCCL_COMM_ID is not of the form host:port");
    return -1;
  }
  memcpy(host, text, n);
  host[n] = 0;
  int e = getaddrinfo(host, NULL, &hints, &found);
  if (e != 0) {
    snprintf(err, errlen, "the host %s of NCCL_COMM_ID cannot be resolved: %s", host, gai_strerror(e));
    return -1;
  }
  hccl_meet_put_address(address, found->ai_addr);
  *port = (uint16_t)p;
  freeaddrinfo(found);
  return 0;
}
