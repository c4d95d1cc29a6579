// The time in front of a line of the log, in the form of NCCL_DEBUG_TIMESTAMP_FORMAT: strftime's, where %1f to %9f is the fraction
// of the second in as many digits and _ a blank. C, because the host's locale and time zone count, and shared with the shim like
// source.h.
#ifndef HCCL_PARAMS_STAMP_H
#define HCCL_PARAMS_STAMP_H
#include <stddef.h>

#define HCCL_STAMP_FORMAT "[%F %T] "

// Writes the time now and a zero; a NULL format is the default, and one whose result has no room gives nothing. Returns its length.
size_t hccl_stamp(char* out, size_t size, const char* format);

// Whether lines of a level have a time, by NCCL_DEBUG_TIMESTAMP_LEVELS: names separated by commas, ALL, ^ in front for all but these;
// NULL: WARN alone.
int hccl_stamp_wanted(const char* levels, const char* level);
#endif
