// A part of the root: see root.go.
#include "../../../capi/shim/meet_addrs.c"
