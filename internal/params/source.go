package params

// #include "source.h"
// #include "stamp.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"
)

// found is what a setting's name stands for, and where.
type found struct {
	name, text string
	file       string // "": the environment
	line       int
}

func (f found) source() Source {
	if f.file == "" {
		return Environment
	}
	return File
}

// place names the source for people.
func (f found) place() string {
	if f.file == "" {
		return "environment"
	}
	return fmt.Sprintf("%s:%d", f.file, f.line)
}

func fromC(s *C.struct_hccl_setting) found {
	f := found{name: C.GoString(s.name), text: C.GoString(s.value), line: int(s.line)}
	if s.file != nil {
		f.file = C.GoString(s.file)
	}
	return f
}

// find asks C's environment, which a setenv of a moment ago has changed, and then the files.
func find(name string) (found, bool) {
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	var s C.struct_hccl_setting
	if C.hccl_setting_find(key, &s) == 0 {
		return found{}, false
	}
	return fromC(&s), true
}

// names lists the names in the environment that are NCCL's or ours, known or not.
func names() []string {
	size := C.size_t(4096)
	for {
		room := C.malloc(size)
		need := C.hccl_settings_names((*C.char)(room), size)
		if need <= size {
			text := C.GoStringN((*C.char)(room), C.int(need))
			C.free(room)
			return strings.Fields(text)
		}
		C.free(room)
		size = 2 * need // the environment may grow meanwhile
	}
}

// readFile is what stands in one settings file and what is wrong with it; ok is false where there is none.
func readFile(f *C.struct_hccl_settings_file) (lines []found, faults []string, ok bool) {
	var s C.struct_hccl_setting
	for k := C.size_t(0); C.hccl_settings_line(f, k, &s) != 0; k++ {
		lines = append(lines, fromC(&s))
	}
	for k := C.size_t(0); ; k++ {
		text := C.hccl_settings_fault(f, k)
		if text == nil {
			return lines, faults, f != nil
		}
		faults = append(faults, C.GoString(text))
	}
}

// files is what stands in the files that count, in their order, and what is wrong with them.
func files() (lines []found, faults []string) {
	for k := range 2 {
		more, wrong, _ := readFile(C.hccl_settings_file(C.int(k)))
		lines, faults = append(lines, more...), append(faults, wrong...)
	}
	return lines, faults
}

// fileAt reads any file as a settings file.
func fileAt(path string) (lines []found, faults []string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	f := C.hccl_settings_read(name, 0)
	defer C.hccl_settings_free(f)
	lines, faults, _ = readFile(f)
	return lines, faults
}

// CacheFolder is where programs of this user keep what can be had again, by the rule of freedesktop.org: XDG_CACHE_HOME, or .cache in
// the home folder. "" where neither is an absolute path.
func CacheFolder() string {
	for _, at := range []struct{ name, below string }{{"XDG_CACHE_HOME", ""}, {"HOME", ".cache"}} {
		key := C.CString(at.name)
		folder := C.GoString(C.getenv(key))
		C.free(unsafe.Pointer(key))
		if filepath.IsAbs(folder) {
			return filepath.Join(folder, at.below)
		}
	}
	return ""
}

// stamp is the time now in a format of NCCL_DEBUG_TIMESTAMP_FORMAT.
func stamp(format string) string {
	text := C.CString(format)
	defer C.free(unsafe.Pointer(text))
	var room [256]C.char
	n := C.hccl_stamp(&room[0], C.size_t(len(room)), text)
	return C.GoStringN(&room[0], C.int(n))
}

func stampWanted(levels, level string) bool {
	list, word := C.CString(levels), C.CString(level)
	defer C.free(unsafe.Pointer(list))
	defer C.free(unsafe.Pointer(word))
	return C.hccl_stamp_wanted(list, word) != 0
}
