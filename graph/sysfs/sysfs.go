// Package sysfs makes a topo.Machine of what Linux says about the machine: NUMA nodes and processors, the PCI tree, network
// interfaces and RDMA devices, all from /sys and /proc.
//
//	cpus.go    sys/devices/system/node, proc/cpuinfo          NUMA nodes, kind of processor
//	pci.go     sys/bus/pci/devices -> sys/devices/pci...       the tree: GPUs, NVSwitches, and the switches above them and above cards
//	ports.go   sys/class/net, sys/class/infiniband             cards and their ports
//	tree.go    how a file, a link and a list of names is read
//	record.go  writes down what was read, so that a machine can be looked at elsewhere
//
// It reads any fs.FS, with paths from the root: a recorded machine in tests, the running one in production. What GPUs there are it
// knows by their places on the bus alone; package nvml says the rest.
//
// No machine is refused. What is missing or odd is worked around and said in a note: containers hide parts of /sys, virtual machines
// leave out NUMA nodes and speeds, and a job must not stop for that.
package sysfs

import (
	"cmp"
	"io/fs"
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// Read makes the machine. It has not been through topo.Clean, since others add to it first. goarch is for systems whose
// proc/cpuinfo does not tell the kind of processor; it is a value of runtime.GOARCH.
func Read(fsys fs.FS, goarch string) (*topo.Machine, *topo.Report) {
	r := newReader(fsys)
	return r.read(goarch), r.Report
}

// reader collects the machine while it is read.
type reader struct {
	tree
	*topo.Report
	machine  *topo.Machine
	template topo.CPU                // the kind of processor, which all NUMA nodes have
	paths    map[string]string       // of devices by bus id: where their files are
	class    map[string]topo.Class   // of devices by bus id
	devices  map[string]*topo.Device // those that are in the machine
	without  []string                // interfaces whose speed is not told
	narrow   []string                // devices whose link has fewer lanes than it could have
	rdma     []*ifc                  // RDMA devices with active ports
}

func newReader(fsys fs.FS) *reader {
	return &reader{tree: tree{fsys: fsys}, Report: &topo.Report{}, machine: &topo.Machine{}, paths: map[string]string{},
		class: map[string]topo.Class{}, devices: map[string]*topo.Device{}}
}

func (r *reader) read(goarch string) *topo.Machine {
	r.cpus(goarch)
	r.pci()
	r.ports()
	r.summary()
	r.settle()
	return r.machine
}

// settle leaves NUMA nodes out that have nothing, such as those of memory alone, and puts devices into the order of the bus.
func (r *reader) settle() {
	m := r.machine
	used := func(c *topo.CPU) bool { return c.Affinity != "" || len(c.Devices) > 0 }
	first := m.CPUs[0]
	if m.CPUs = slices.DeleteFunc(m.CPUs, func(c *topo.CPU) bool { return !used(c) }); len(m.CPUs) == 0 {
		m.CPUs = []*topo.CPU{first}
	}
	slices.SortStableFunc(m.CPUs, func(a, b *topo.CPU) int { return cmp.Compare(a.NUMA, b.NUMA) })
	for _, c := range m.CPUs {
		inOrder(c.Devices)
	}
}

func inOrder(devices []*topo.Device) {
	slices.SortStableFunc(devices, func(a, b *topo.Device) int {
		x, bad := topo.BusNumber(a.BusID)
		y, worse := topo.BusNumber(b.BusID)
		if bad != nil || worse != nil { // those that are on no bus come last
			return cmp.Compare(len(b.BusID), len(a.BusID))
		}
		return cmp.Compare(x, y)
	})
	for _, d := range devices {
		inOrder(d.Below)
	}
}
