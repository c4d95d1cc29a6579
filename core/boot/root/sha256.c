// The proof of the secret: see root.go.
#include "../../../capi/shim/sha256.c"
