// Go takes its environment from behind argv, not from C's environ. While the core is opened, the entries there that speak to Go
// programs point at a dummy: they were set for the host, and some would bring back what the core must be without (SIGURG, output).
#ifndef HCCL_HIDE_H
#define HCCL_HIDE_H

enum { HCCL_HIDDEN = 16 };

struct hccl_hidden {
  int count;
  char* real[HCCL_HIDDEN];
};

void hccl_hide_environment(struct hccl_hidden* h);
void hccl_show_environment(const struct hccl_hidden* h);
#endif
