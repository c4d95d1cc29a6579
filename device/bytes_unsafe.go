package device

import "unsafe"

// BytesPtr is the address of memory of the Go heap. The caller keeps b alive for as long as the address is used; heap memory does
// not move.
func BytesPtr(b []byte) Ptr { return Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
