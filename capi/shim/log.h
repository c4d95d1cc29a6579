// The shim's own lines of the log: refused arguments and calls that are not there. The core has a log of its own (internal/log) of
// the same form; this one exists because much of what the shim says must not start the core.
#ifndef HCCL_LOG_H
#define HCCL_LOG_H
#include <stddef.h>

// One line at NCCL_DEBUG=WARN and above, on stderr or in NCCL_DEBUG_FILE. Nothing by default.
void hccl_warn(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Writes a line to stderr at once, whatever NCCL_DEBUG says, for what a program asks to be printed.
void hccl_say(const char* line, size_t n);
#endif
