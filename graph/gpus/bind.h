#ifndef HCCL_NVML_BIND_H
#define HCCL_NVML_BIND_H

// Loads NVML for good and leads all stubs to it. Returns why it cannot, or NULL. One thread at a time.
const char* hccl_nvml_bind(const char* library);

#endif
