package params

// #include <stdlib.h>
import "C"

import "unsafe"

// getenv is C's: it sees what setenv did in this process a moment ago.
func getenv(name string) (string, bool) {
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	value := C.getenv(key)
	if value == nil {
		return "", false
	}
	return C.GoString(value), true
}
