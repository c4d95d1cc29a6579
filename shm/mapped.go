package shm

import (
	"sync"

	"golang.org/x/sys/unix"
)

// mapped are the segments that this process has mapped. Ranks that are its threads share one mapping: with hundreds of them, page
// tables and faults of as many mappings would be more than all else.
var mapped struct {
	mu     sync.Mutex
	by     map[file]*mapping    // guarded by mu
	atBase map[uintptr]*mapping // guarded by mu
}

// file tells memory apart as long as somebody holds it.
type file struct{ dev, ino uint64 }

type mapping struct {
	file
	base uintptr
	size uint64
	refs int // guarded by mapped.mu
}

// mapShared maps memory as mapMemory does, or returns where it is mapped already. unmapShared gives it back.
func mapShared(fd int, size uint64) (uintptr, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return 0, err
	}
	mapped.mu.Lock()
	defer mapped.mu.Unlock()
	key := file{uint64(st.Dev), st.Ino}
	if m := mapped.by[key]; m != nil && m.size == size {
		m.refs++
		return m.base, nil
	}
	base, err := mapMemory(fd, size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return 0, err
	}
	if mapped.by == nil {
		mapped.by, mapped.atBase = map[file]*mapping{}, map[uintptr]*mapping{}
	}
	m := &mapping{file: key, base: base, size: size, refs: 1}
	mapped.by[key], mapped.atBase[base] = m, m
	return base, nil
}

// unmapShared reports whether base is of mapShared.
func unmapShared(base uintptr) bool {
	mapped.mu.Lock()
	defer mapped.mu.Unlock()
	m := mapped.atBase[base]
	if m == nil {
		return false
	}
	if m.refs--; m.refs > 0 {
		return true
	}
	delete(mapped.by, m.file)
	delete(mapped.atBase, base)
	unmapMemory(base, m.size)
	return true
}
