package testkit

// #include <stdlib.h>
import "C"

import (
	"testing"
	"unsafe"
)

// Setenv gives a setting a value, "" for none, until the test ends. The next communicator that is made reads it.
func Setenv(t testing.TB, name, value string) {
	t.Helper()
	setenv(name, value)
	t.Cleanup(func() { setenv(name, "") })
}

// setenv sets a variable to a text; params takes an empty one for none.
func setenv(name, value string) {
	n, v := C.CString(name), C.CString(value)
	C.setenv(n, v, 1)
	C.free(unsafe.Pointer(n))
	C.free(unsafe.Pointer(v))
}

// SetAlways is Setenv for what comes before the tests.
func SetAlways(name, value string) { setenv(name, value) }
