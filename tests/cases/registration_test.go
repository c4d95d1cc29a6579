package cases

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Buffers that are registered while the program frees their memory, with the kernel's help and without.
func TestRegistration(t *testing.T) {
	const userModeOnly = 1 // of userfaultfd, for programs without rights
	told := true
	if fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, userModeOnly, 0, 0); e == 0 {
		_ = unix.Close(int(fd))
	} else {
		told = false
		t.Logf("no userfaultfd (%v): what needs it is left out", e)
	}
	for _, c := range []struct {
		name, program, arg string
		paths              []path
		needs              bool // userfaultfd
	}{
		{"freed while registered", "case_registration", "freed", both[:1], true},
		{"freed by threads and handlers", "case_registration", "threads", both, false},
		{"fork", "case_registration", "fork", both[:1], true},
		{"nothing is there before", "case_unwatched", "lazy", both[:1], true},
		{"the descriptor is closed", "case_unwatched", "closed", both[:1], true},
		{"nothing is kept", "case_unwatched", "nothing_kept", both[:1], false},
		{"refused by the system", "case_unwatched", "refused", both[:1], false},
	} {
		if told || !c.needs {
			t.Run(c.name, func(t *testing.T) { try(t, c.paths, c.program, c.arg) })
		}
	}
}
