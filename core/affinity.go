package core

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/graph/affinity"
	"hccl.dev/hccl/graph/detect"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/staging"
)

// The library's own threads, which read from the network and do what is queued on streams, run near the card that the communicator
// sends through, or where NCCL_PROXY_CPUSET puts them. Threads of the program may run where they might before; only spread.go
// moves them among those processors. The machine is looked at only where something asks for it: a topology file that is set, or several
// NUMA nodes and ranks on other hosts.

// OwnThreads says that all threads of the Go runtime are the library's own, as in the shared library: in a Go program they are the
// program's as well, and stay where they are. Set it before the first call.
var OwnThreads bool

// pinning is where the library's own threads belong. It is replaced as a whole.
type pinning struct {
	from []unix.CPUSet // where they have been by the library's doing: one that is elsewhere was moved by somebody who knows why
	to   unix.CPUSet
}

var (
	pins   atomic.Pointer[pinning] // nil: they stay where they began
	pinsMu sync.Mutex              // held while it is replaced
)

// pin puts the calling thread, one of the library's own, where it belongs. Threads begin where the one was that made them.
func pin() {
	b := pins.Load()
	if b == nil {
		return
	}
	var now unix.CPUSet
	if unix.SchedGetaffinity(0, &now) != nil || now == b.to {
		return
	}
	for _, before := range b.from {
		if now == before {
			_ = unix.SchedSetaffinity(0, &b.to) // refused where a cgroup has taken the processors: it stays
		}
	}
}

// unpin gives the calling thread, one of the library's own, the processors that it began with, for a function of the program; what it
// returns ends that.
func unpin() func() {
	b := pins.Load()
	var now unix.CPUSet
	if b == nil || unix.SchedGetaffinity(0, &now) != nil || now != b.to || unix.SchedSetaffinity(0, &b.from[0]) != nil {
		return func() {}
	}
	return pin
}

// place finds where the library's threads belong for this communicator, and says so. Communicators of a process share the threads:
// what one asks for is added to what others did.
func (c *Comm) place() {
	v := c.settings
	dumps := v.TopoDumpFile != "" && c.rank == v.TopoDumpRank
	near := c.net != nil && severalNodes()
	if !dumps && !near && v.TopoFile == "" && v.ProxyCPUs.Empty() {
		return
	}
	m := &topo.Machine{}
	if dumps || near || v.TopoFile != "" {
		m = c.machine(dumps)
	}
	mask := libraryMask()
	p := affinity.Place(m, affinity.Rank{GPU: onHost, Port: c.port(), Mask: mask, Ignore: v.IgnoreAffinity, Proxy: v.ProxyCPUs})
	if p.Memory >= 0 {
		staging.Shared.Prefer(p.Memory)
	}
	if !OwnThreads {
		p = affinity.Placement{Why: "the threads of a Go program stay where they are"}
	}
	c.log.Info(log.Init, "communicator %s: rank %d: %s", c.label(), c.rank, p.Why)
	if !p.Threads.Empty() {
		pinTo(mask, p.Threads, !v.ProxyCPUs.Empty())
	}
}

const onHost = -1 // the GPU of a rank on host memory

// machine is the one that the settings want, without GPUs unless it is to be written. What is said of it is said once: faults of a file
// by one rank of those of a host that go by it.
func (c *Comm) machine(dump bool) *topo.Machine {
	f := machineBy(sight{c.settings.TopoFile, dump})
	who := c.rank
	if !dump {
		who = c.teller()
	}
	for _, fault := range f.Report.Faults {
		switch text := finding(f, fault); {
		case who == c.rank:
			log.WarnOnce(text, "%s", text)
		case c.peers[who].Process != c.peers[c.rank].Process:
			log.InfoOnce(log.Graph, text, "%s", text)
			log.Leave(text)
		}
	}
	for _, note := range f.Report.Notes {
		text := finding(f, note)
		log.InfoOnce(log.Graph, text, "%s", text)
	}
	log.InfoOnce(log.Graph, "topology from "+f.From, "topology: this machine, by %s", f.From)
	if !dump {
		return f.Machine
	}
	if err := detect.Write(c.settings.TopoDumpFile, f.Machine); err != nil {
		c.log.Warn("topology: %v; name a file in a folder that rank %d may write to", err, c.rank)
	} else {
		c.log.Info(log.Graph, "topology: rank %d has written %s", c.rank, c.settings.TopoDumpFile)
	}
	return f.Machine
}

// teller is the first rank on this host that goes by this rank's topology file and whose log takes warnings, else this rank.
func (c *Comm) teller() int {
	for _, r := range c.ofHost() {
		if c.n > 1 && c.peers[r].File == c.peers[c.rank].File && warns(&c.peers[r]) {
			return r
		}
	}
	return c.rank
}

// finding is a fault or note as the log has it: what stands in a line names the file, and else it is of this machine.
func finding(f *detect.Found, what topo.Fault) string {
	if what.Line > 0 {
		return fmt.Sprintf("topology: %s: %s", f.File, what)
	}
	return fmt.Sprintf("topology: %s", what)
}

// severalNodes reports whether the machine has more than one NUMA node.
var severalNodes = sync.OnceValue(func() bool {
	online, _ := os.ReadFile("/sys/devices/system/node/online")
	set, err := cpuset.Parse(string(online))
	return err == nil && set.Len() > 1
})

// port is a near interface where there is one, else that of the address which this rank gives out first; "" where nothing goes over the
// network.
func (c *Comm) port() string {
	if c.net == nil || len(c.peers[c.rank].Addrs) == 0 {
		return ""
	}
	nics := pool.Interfaces()
	if k := slices.Index(c.nearCards(nics), true); k >= 0 {
		return nics[k].Name
	}
	return boot.InterfaceOf(c.peers[c.rank].Addrs[0].Addr())
}

// libraryMask is where threads of the library begin: a launcher's pinning that was there when the library was loaded. What the
// program does with its own threads later does not count.
var libraryMask = sync.OnceValue(func() cpuset.Set {
	found := make(chan cpuset.Set)
	go func() { // on a thread of the library, and not on the calling one
		var now unix.CPUSet
		_ = unix.SchedGetaffinity(0, &now)
		found <- fromMask(now)
	}()
	return <-found
})

func fromMask(mask unix.CPUSet) (s cpuset.Set) {
	var cpus []int
	for c := range len(mask) * 64 {
		if mask.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpuset.Of(cpus...)
}

func toMask(s cpuset.Set) (mask unix.CPUSet) {
	for _, c := range s.All() {
		mask.Set(c) // those beyond what it can hold are left out
	}
	return mask
}

// pinTo has the library's threads run on a set of processors from now on. alone: not also where they ran before.
func pinTo(began, set cpuset.Set, alone bool) {
	pinsMu.Lock()
	defer pinsMu.Unlock()
	next := &pinning{from: []unix.CPUSet{toMask(began)}}
	if b := pins.Load(); b != nil {
		next.from = append(b.from[:len(b.from):len(b.from)], b.to)
		if !alone {
			set = set.Or(fromMask(b.to))
		}
	}
	if next.to = toMask(set); next.to != next.from[len(next.from)-1] {
		pins.Store(next)
	}
}
