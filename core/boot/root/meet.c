// Unique ids: the shim's file, compiled once more for programs without the shim.
#include "../../../capi/shim/meet.c"
