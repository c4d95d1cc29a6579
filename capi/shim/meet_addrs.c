// The addresses by which ranks may reach the root: which of its host's, and how they are written so that many go into an id.
#define _GNU_SOURCE 1
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "meet_parts.h"
#include "../../internal/params/source.h"

// --- Packed ---

size_t hccl_meet_pack(unsigned char* out, size_t room, const unsigned char* address) {
  size_t start = 0, run = 0;
  if (address[0] == 4) {
    if (room < 5) return 0;
    out[0] = HCCL_ADDRESS_V4;
    memcpy(out + 1, address + 1, 4);
    return 5;
  }
  for (size_t s = 0; s < 16; s++) {
    size_t n = 0;
    while (n < 15 && s + n < 16 && address[1 + s + n] == 0) n++;
    if (n > run) start = s, run = n;
  }
  if (room < 17 - run) return 0;
  out[0] = (unsigned char)(start << 4 | run);
  memcpy(out + 1, address + 1, start);
  memcpy(out + 1 + start, address + 1 + start + run, 16 - start - run);
  return 17 - run;
}

void hccl_meet_unpack(const unsigned char* in, unsigned char* address) {
  size_t start = in[0] >> 4, run = in[0] & 15;
  memset(address, 0, HCCL_ADDRESS_SIZE);
  address[0] = in[0] == HCCL_ADDRESS_V4 ? 4 : 6;
  if (address[0] == 4) {
    memcpy(address + 1, in + 1, 4);
  } else if (start + run <= 16) {
    memcpy(address + 1, in + 1, start);
    memcpy(address + 1 + start + run, in + 1 + start, 16 - start - run);
  }
}

void hccl_meet_put_address(unsigned char* out, const struct sockaddr* sa) {
  memset(out, 0, HCCL_ADDRESS_SIZE);
  out[0] = sa->sa_family == AF_INET ? 4 : 6;
  if (out[0] == 4) memcpy(out + 1, &((const struct sockaddr_in*)sa)->sin_addr, 4);
  else memcpy(out + 1, &((const struct sockaddr_in6*)sa)->sin6_addr, 16);
}

// --- Chosen ---

// The name of an interface, without the label of one of its addresses.
static const char* name_of(const struct ifaddrs* i, char name[IF_NAMESIZE]) {
  snprintf(name, IF_NAMESIZE, "%.*s", (int)strcspn(i->ifa_name, ":"), i->ifa_name);
  return name;
}

// Whether NCCL_SOCKET_IFNAME (prefixes; "=" for whole names, "^" for all others) chooses an interface.
static int chosen(const char* rule, const char* name) {
  int not = rule[0] == '^', whole;
  rule += not;
  whole = rule[0] == '=';
  for (const char* p = rule; *p;) {
    if (*p == '=') p++;
    size_t n = strcspn(p, ",");
    if (n > 0 && strncmp(p, name, n) == 0 && (!whole || name[n] == 0)) return !not;
    p += n + (p[n] == ',');
  }
  return not;
}

// Interfaces that rarely lead to another host come last, unless the user names them.
static int doubtful(const char* name, const struct sockaddr* sa) {
  static const char* const prefixes[] = {"docker", "virbr", "br-", "veth", "tun", "vpn", "cni", "podman"};
  for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
    if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0) return 1;
  const unsigned char* v4 = (const unsigned char*)&((const struct sockaddr_in*)sa)->sin_addr;
  return sa->sa_family == AF_INET && v4[0] == 169 && v4[1] == 254;
}

struct wish {
  const char* rule; // NCCL_SOCKET_IFNAME, NULL: any
  int family;       // NCCL_SOCKET_FAMILY, 0: any
};

static struct wish wish(void) {
  const char *rule = hccl_setting("NCCL_SOCKET_IFNAME"), *family = hccl_setting("NCCL_SOCKET_FAMILY");
  struct wish w = {rule && *rule ? rule : NULL, 0};
  if (family && strcmp(family, "AF_INET") == 0) w.family = AF_INET;
  if (family && strcmp(family, "AF_INET6") == 0) w.family = AF_INET6;
  return w;
}

static int usable(const struct wish* w, const struct ifaddrs* i) {
  if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) return 0;
  int family = i->ifa_addr->sa_family;
  if (w->family && family != w->family) return 0;
  // The loopback device may have an address that other hosts reach.
  if (family == AF_INET) return ((const unsigned char*)&((struct sockaddr_in*)i->ifa_addr)->sin_addr)[0] != 127;
  if (family != AF_INET6) return 0;
  // A link-local address means nothing on another host without the name of the interface there.
  const struct in6_addr* v6 = &((struct sockaddr_in6*)i->ifa_addr)->sin6_addr;
  return !IN6_IS_ADDR_LINKLOCAL(v6) && !IN6_IS_ADDR_LOOPBACK(v6);
}

static int is_first(const struct wish* w, const struct ifaddrs* list, const struct ifaddrs* i, const char* name) {
  char other[IF_NAMESIZE];
  for (; list != i; list = list->ifa_next)
    if (usable(w, list) && strcmp(name_of(list, other), name) == 0) return 0;
  return 1;
}

// How likely an address is to be reached, the likeliest 0. What has no room in the id is left out from behind.
enum { LIKELY, FURTHER, NO_CARRIER, DOUBTFUL, CLASSES };

static int class_of(const struct wish* w, const struct ifaddrs* list, const struct ifaddrs* i) {
  char name[IF_NAMESIZE];
  name_of(i, name);
  if (!w->rule && doubtful(name, i->ifa_addr)) return DOUBTFUL;
  if (!(i->ifa_flags & IFF_RUNNING)) return NO_CARRIER;
  return is_first(w, list, i, name) ? LIKELY : FURTHER;
}

// A rule that matches nothing is the user's mistake, to be told at once and with what there is.
static int no_such_interface(const char* rule, const struct ifaddrs* list, char* err, size_t errlen) {
  int n = snprintf(err, errlen, "NCCL_SOCKET_IFNAME=%s matches no interface of this host; there are:", rule);
  for (const struct ifaddrs* i = list; i; i = i->ifa_next) {
    const struct ifaddrs* before = list;
    while (before != i && strcmp(before->ifa_name, i->ifa_name)) before = before->ifa_next;
    if (before == i && n > 0 && (size_t)n < errlen) n += snprintf(err + n, errlen - (size_t)n, " %s", i->ifa_name);
  }
  return -1;
}

int hccl_meet_addresses(struct packed* out, char* err, size_t errlen) {
  const struct wish w = wish();
  unsigned char address[HCCL_ADDRESS_SIZE], loopback[HCCL_ADDRESS_SIZE] = {4, 127, 0, 0, 1}, end[HCCL_ADDRESS_SIZE];
  struct ifaddrs* list = NULL;
  size_t at = 0;
  int matched = 0;
  char name[IF_NAMESIZE];
  if (w.family == AF_INET6) memset(loopback, 0, sizeof loopback), loopback[0] = 6, loopback[16] = 1;
  size_t last = hccl_meet_pack(end, sizeof end, loopback);
  memset(out, 0, sizeof *out);
  if (getifaddrs(&list) != 0) list = NULL;
  for (int class = LIKELY; class < CLASSES; class++)
    for (const struct ifaddrs* i = list; i; i = i->ifa_next) {
      if (w.rule && !chosen(w.rule, name_of(i, name))) continue;
      matched = 1;
      if (!usable(&w, i) || class_of(&w, list, i) != class) continue;
      hccl_meet_put_address(address, i->ifa_addr);
      size_t n = hccl_meet_pack(out->bytes + at, sizeof out->bytes - last - at, address);
      at += n;
      if (n > 0) out->count++;
      else if (class <= FURTHER && out->left < 255) out->left++;
    }
  int res = w.rule && list && !matched ? no_such_interface(w.rule, list, err, errlen) : 0;
  freeifaddrs(list);
  memcpy(out->bytes + at, end, last);
  out->count++;
  return res;
}
