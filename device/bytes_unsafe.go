package device

import "unsafe"

// BytesPtr is the address of memory of the Go heap. The caller keeps b alive for as long as the address is used; heap memory does
// not move.
func BytesPtr(b []byte) Ptr { return Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// Bytes is the memory at p as a slice: only for addresses that the CPU may touch. A Ptr keeps nothing alive, so its owner must.
// The Ptr's storage is read as a pointer, because p comes from C or from BytesPtr and is no result of arithmetic on a Go pointer.
func Bytes(p Ptr, n uint64) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
}
