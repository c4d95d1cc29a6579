// What Go calls of the shim: open.c keeps the shim's services and hands the calls on.
#ifndef HCCL_SERVICES_H
#define HCCL_SERVICES_H
#include "core_table.h"
#include <stdlib.h>

void hccl_core_error(struct ncclComm* comm, const char* text, int later);
void hccl_core_ready(struct ncclComm* comm, int rank, int nranks, void* hot);
void hccl_core_fd_opened(int fd);
void hccl_core_fd_closed(int fd);
const char* hccl_core_path(void);
unsigned long long hccl_core_strangers(void);
size_t hccl_core_take_key(unsigned char* out, size_t room);
void hccl_core_call(void* fn, void* arg); // fn(arg): Go cannot call a C function by its address
void hccl_core_tell(void* fn, void* request, int result, void* arg);
#endif
