// The same settings as the core has, without Go: see internal/params/source.h.
#include "../../internal/params/source_file.c"
