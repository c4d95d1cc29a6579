// How the root's C asks for settings in a Go program: by a function of package params, which Go hands over before the first call.
#ifndef HCCL_ROOT_SETTING_H
#define HCCL_ROOT_SETTING_H
void hccl_root_use(void* setting); // a const char* (*)(const char* name)
#endif
