package staging

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/log"
)

// What makes memory better and is not needed. The system may refuse each; then it is not asked again, and once said why.
const (
	locked = iota // it is never written to a swap device
	huge          // one entry of the processor's address cache covers 2 MiB
	placed        // it is on the NUMA node of the card that sends it
)

var comforts = [...]string{locked: "locked in memory", huge: "on huge pages", placed: "on the network card's NUMA node"}

// hugeFrom is the class size from which huge pages are asked for: small buffers that are in use fit the address cache as they are, and
// the first touch of a huge page clears all of it.
const hugeFrom = 64 << 10

// Prefer puts chunks that are made later on a NUMA node, that of the network card. Where communicators want different ones, memory
// stays where it is touched first.
func (p *Pool) Prefer(node int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.wanted == 0:
		p.node, p.wanted = node, 1
	case p.node != node:
		p.wanted = 2
	}
}

// comfort asks for what c's memory may have. mu is held.
func (p *Pool) comfort(c *chunk) {
	_ = unix.Madvise(c.mem, unix.MADV_DONTFORK) // a child does not write to it, and the parent need not copy it
	if p.wanted == 1 {
		p.ask(placed, func() error { return bind(c.mem, p.node) })
	}
	if !p.opts.NoHuge {
		advice := unix.MADV_NOHUGEPAGE
		if p.sizes.sizes[c.class] >= hugeFrom {
			advice = unix.MADV_HUGEPAGE
		}
		p.ask(huge, func() error { return hugePages(c.mem, advice) })
	}
	if !p.opts.NoLock {
		p.ask(locked, func() error { return p.lock(c.mem) })
	}
}

// ask does what a comfort needs unless the system has refused it before.
func (p *Pool) ask(comfort int, do func() error) {
	if p.refused[comfort] != "" {
		return
	}
	if err := do(); err != nil {
		p.refused[comfort] = err.Error()
		log.InfoOnce(log.Net, "staging not "+comforts[comfort], "staging is not %s: %v", comforts[comfort], err)
	}
}

// lock locks pages as they are touched. A limit that is lower than the cap is the program's own, for what it locks itself.
func (p *Pool) lock(mem []byte) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	if limit.Cur < p.opts.Most && !mayLock() {
		return fmt.Errorf("the process may lock %d KiB, less than the cap of %d MiB; raise RLIMIT_MEMLOCK (ulimit -l)",
			limit.Cur>>10, p.opts.Most>>20)
	}
	return os.NewSyscallError("mlock2", lockOnFault(mem))
}

// mayLock reports whether the process has the capability to lock what it wants.
func mayLock() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&head, &sets[0]) == nil && sets[unix.CAP_IPC_LOCK/32].Effective>>(unix.CAP_IPC_LOCK%32)&1 != 0
}

const hugeSwitch = "/sys/kernel/mm/transparent_hugepage/enabled"

func hugePages(mem []byte, advice int) error {
	if text, err := os.ReadFile(hugeSwitch); err == nil && strings.Contains(string(text), "[never]") {
		return fmt.Errorf("%s says never", hugeSwitch)
	}
	return os.NewSyscallError("madvise", unix.Madvise(mem, advice))
}
