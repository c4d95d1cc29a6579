//go:build race

package fast

import (
	"runtime"
	"unsafe"
)

// The race detector does not see atomics on C memory, so the lock tells it what it orders.

func (h *Hot) acquired()  { runtime.RaceAcquire(unsafe.Pointer(h)) }
func (h *Hot) releasing() { runtime.RaceRelease(unsafe.Pointer(h)) }
