package core

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// identity is what tells this process and its surroundings apart from others. Equal boot ids and namespaces make it likely that
// two ranks can share memory; only a key handed over an abstract socket proves it.
type identity struct {
	pid     int32
	started uint64 // clock ticks after boot, field 22 of /proc/self/stat
	bootID  string
	netNS   uint64
	pidNS   uint64
}

var self = sync.OnceValue(func() identity {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return identity{pid: int32(os.Getpid()), started: startTime(os.Getpid()), bootID: string(bytes.TrimSpace(boot)),
		netNS: inode("/proc/self/ns/net"), pidNS: inode("/proc/self/ns/pid")}
})

func inode(path string) uint64 {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0
	}
	return st.Ino
}

// startTime is when a process began, 0 where that cannot be read.
func startTime(pid int) uint64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(stat), ") ") // the command in brackets may hold anything, the last ") " ends it
	for ok {
		var more string
		if _, more, ok = strings.Cut(rest, ") "); ok {
			rest = more
		}
	}
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(fields[19], 10, 64)
	return n
}
