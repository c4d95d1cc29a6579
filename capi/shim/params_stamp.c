// The time in front of the shim's lines of the log: see internal/params/stamp.h.
#include "../../internal/params/stamp.c"
