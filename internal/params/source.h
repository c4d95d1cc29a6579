// Where settings come from: the environment, then the user's file (the one that NCCL_CONF_FILE names, else ~/.nccl.conf), then
// /etc/nccl.conf. The order is NCCL's, and so is that the first place with a name counts, within a file too, and that an empty value
// in an earlier place hides a later one.
//
// This is C, so that the rule stands once: the core asks it through cgo, and the shim, which answers some questions before there
// is any Go, compiles the same file (capi/shim/params_source.c). Each of the two objects has a copy of its own.
//
// A file is read once in the life of the process, when the values of NCCL_CONF_FILE and HOME first name it. What has been read is
// never freed: texts that are returned stay valid, except those of the environment, which belong to the host program. No lock is
// taken, so a forked child may ask as well.
#ifndef HCCL_PARAMS_SOURCE_H
#define HCCL_PARAMS_SOURCE_H
#include <stddef.h>

// One line of a file that sets something, or a value that was found.
struct hccl_setting {
  const char *name, *value;
  const char* file; // NULL: the environment
  int line;         // of file, from 1
};

struct hccl_settings_file;

// The value of a setting, NULL where nothing sets it.
const char* hccl_setting(const char* name);
// The same with its place; 0: nothing sets it.
int hccl_setting_find(const char* name, struct hccl_setting* out);

// The files that count now, NULL for one that is not there; k is 0 or 1.
const struct hccl_settings_file* hccl_settings_file(int k);
// Its lines, and what is wrong with it, one by one from 0; they end with 0 and NULL.
int hccl_settings_line(const struct hccl_settings_file* f, size_t k, struct hccl_setting* out);
const char* hccl_settings_fault(const struct hccl_settings_file* f, size_t k);

// Reads one file apart from those that count; NULL without memory, or where the file is not there and may be missing.
struct hccl_settings_file* hccl_settings_read(const char* path, int may_be_missing);
void hccl_settings_free(struct hccl_settings_file* f);

// Writes the names of the environment that begin with NCCL_ or HCCL_, a newline behind each, and returns how many bytes they need.
size_t hccl_settings_names(char* out, size_t size);
#endif
