package params

// #include "source.h"
import "C"

import "unsafe"

// SourceFunc is C's hccl_setting, for C of other packages that asks for settings itself: cgo compiles each package's C alone, so
// that one cannot call the other's by name.
func SourceFunc() unsafe.Pointer { return unsafe.Pointer(C.hccl_setting) }
