// An NVML of two GPUs, with a few of its functions, as a driver of some version may have them. Handles are numbers from 1.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, UNINITIALIZED = 1 };

static int started;

int nvmlInit_v2(void) { return started++, SUCCESS; }
int nvmlShutdown(void) { return started-- > 0 ? SUCCESS : UNINITIALIZED; }
const char* nvmlErrorString(int result) { return result == INVALID ? "that is invalid here" : "something else"; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return started ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, uintptr_t* device) {
  *device = index + 1;
  return index < 2 ? SUCCESS : INVALID;
}

struct pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
};

int nvmlDeviceGetPciInfo_v3(uintptr_t device, struct pci* p) {
  memset(p, 0, sizeof *p);
  p->bus = device == 1 ? 0x18 : 0x29;
  return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(uintptr_t device, int* major, int* minor) {
  *major = 9 + (device > 2), *minor = 0;
  return SUCCESS;
}

int nvmlDeviceGetNvLinkState(uintptr_t device, unsigned link, int* active) {
  *active = 1;
  return device <= 2 && link < 6 ? SUCCESS : INVALID;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(uintptr_t device, unsigned link, struct pci* p) {
  (void)link;
  return nvmlDeviceGetPciInfo_v3(3 - device, p);
}
