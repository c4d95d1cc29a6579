package gpus

/*
#cgo CFLAGS: -std=gnu11 -O2 -fvisibility=hidden -Wall -Wextra -Werror
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "bind.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

//go:generate go run hccl.dev/hccl/graph/gpus/gen

const library = "libnvidia-ml.so.1"

// ErrAbsent says that NVIDIA's driver is not on this machine, or not in this container. That is usual.
var ErrAbsent = errors.New("no NVIDIA driver")

var binding struct {
	mu  sync.Mutex
	lib nvml.Interface // guarded by mu; nil until NVML was loaded
}

// load finds NVML and leads go-nvml's calls there. It stays loaded. Where it is absent the next call looks again, since a program may
// find it later.
func load() (nvml.Interface, error) {
	binding.mu.Lock()
	defer binding.mu.Unlock()
	if binding.lib != nil {
		return binding.lib, nil
	}
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if why := C.hccl_nvml_bind(name); why != nil {
		return nil, fmt.Errorf("%w: %s", ErrAbsent, C.GoString(why))
	}
	binding.lib = nvml.New(nvml.WithLibraryPath(library))
	return binding.lib, nil
}

// Open loads and starts NVML. The caller ends it by Shutdown. The error says why there is none, or why it does not start.
func Open() (nvml.Interface, error) {
	lib, err := load()
	if err != nil {
		return nil, err
	}
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML does not start: %s", Text(ret))
	}
	return lib, nil
}

// Text is what NVML says of a result.
func Text(ret nvml.Return) string { return fmt.Sprintf("%s (%d)", ret.String(), int(ret)) }
