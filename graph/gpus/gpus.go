// Package gpus completes a topo.Machine with what NVIDIA's management library says: which GPUs there are and where on the bus, what
// they can, where their NVLinks lead, how they hang on their CPU, and to which NVLink fabric of several hosts they belong.
//
//	gpus.go     the devices and their places
//	links.go    NVLinks, C2C, fabric
//	open.go     NVML of the running machine
//	stubs.S     definitions for the names that go-nvml leaves undefined; bind.c fills them
//
// All questions go through go-nvml's interfaces, so that its machines made of mocks answer in tests. The library is loaded at the
// first need, by name and at no other time, and a machine without it is no fault.
package gpus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/cpuset"
)

// Find asks the NVML of this machine for GPUs; it is a detect.Finder.
func Find(m *topo.Machine, direct bool, r *topo.Report) (asked, why string) {
	lib, err := Open()
	if err != nil {
		if !errors.Is(err, ErrAbsent) {
			r.Note(0, fmt.Sprintf("NVIDIA's GPUs are known by their places alone: %v", err), wrong)
		}
		return "", err.Error()
	}
	Add(m, lib, direct, r)
	_ = lib.Shutdown() // it would say again what the questions have said
	return "NVML", ""
}

// Add puts the GPUs that lib knows into the machine, each at its place on the bus. direct says whether network cards can reach their
// memory. Each GPU counts as used, as the rank of its number: who knows better corrects it.
func Add(m *topo.Machine, lib nvml.Interface, direct bool, r *topo.Report) {
	a := &adder{machine: m, Report: r, at: map[uint64]*topo.Device{}}
	m.Walk(func(_ *topo.CPU, d *topo.Device) {
		if bus, err := topo.BusNumber(d.BusID); err == nil {
			a.at[bus] = d
		}
	})
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		r.Note(0, "the GPUs cannot be counted: NVML says "+Text(ret), wrong)
		return
	}
	for number := range count {
		dev, ret := lib.DeviceGetHandleByIndex(number)
		if ret != nvml.SUCCESS {
			r.Note(0, fmt.Sprintf("GPU %d cannot be asked and is left out: NVML says %s", number, Text(ret)), wrong)
			continue
		}
		a.gpu(number, dev, direct)
	}
	a.tell()
}

const wrong = "nvidia-smi says what is wrong with it"

// adder holds what is known while GPUs are added.
type adder struct {
	*topo.Report
	machine *topo.Machine
	at      map[uint64]*topo.Device // by bus number
	away    []string                // GPUs whose place is not in the machine
	down    []string                // GPUs some of whose NVLinks do not work
	split   []string                // GPUs in parts
}

func (a *adder) gpu(number int, dev nvml.Device, direct bool) {
	pci, ret := dev.GetPciInfo()
	if ret != nvml.SUCCESS {
		a.Note(0, fmt.Sprintf("GPU %d has no place on the bus and is left out: NVML says %s", number, Text(ret)), wrong)
		return
	}
	g := &topo.GPU{Number: number, Rank: number, GDR: direct}
	if major, minor, ret := dev.GetCudaComputeCapability(); ret == nvml.SUCCESS {
		g.SM = 10*major + minor
	}
	d := a.place(busID(pci), dev)
	a.nvlinks(g, d, dev)
	a.chip(g, dev)
	a.fabric(g, dev)
	if now, _, ret := dev.GetMigMode(); ret == nvml.SUCCESS && now == nvml.DEVICE_MIG_ENABLE {
		a.split = append(a.split, d.BusID)
	}
	d.GPUs = append(d.GPUs, g)
}

// busID is a place as the kernel spells it. NVML has 8 digits for the domain, and capital letters.
func busID(pci nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
}

// place is the device at a place on the bus. One that the machine does not have is put below the GPU's NUMA node: where in the tree it
// is is not known.
func (a *adder) place(id string, dev nvml.Device) *topo.Device {
	bus, _ := topo.BusNumber(id)
	if d := a.at[bus]; d != nil {
		return d
	}
	a.away = append(a.away, id)
	d := &topo.Device{BusID: id, Class: topo.ClassGPU}
	cpu := a.cpu(dev)
	cpu.Devices, a.at[bus] = append(cpu.Devices, d), d
	return d
}

// cpu is the NUMA node of a GPU, by its number or by its processors; the first one, if it tells neither.
func (a *adder) cpu(dev nvml.Device) *topo.CPU {
	if n, ret := dev.GetNumaNodeId(); ret == nvml.SUCCESS {
		for _, c := range a.machine.CPUs {
			if c.NUMA == n && c.Affinity != "" { // a GPU's memory may be a node of its own
				return c
			}
		}
	}
	if words, ret := dev.GetCpuAffinity(cpuset.Most); ret == nvml.SUCCESS {
		var near []int
		for k, w := range words {
			for bit := range 64 {
				if w>>bit&1 != 0 && 64*k+bit < cpuset.Most {
					near = append(near, 64*k+bit)
				}
			}
		}
		for _, c := range a.machine.CPUs {
			if own, err := cpuset.ParseMask(c.Affinity); err == nil && len(near) > 0 && own.Has(near[0]) {
				return c
			}
		}
	}
	if len(a.machine.CPUs) == 0 {
		a.machine.CPUs = append(a.machine.CPUs, &topo.CPU{NUMA: -1})
	}
	return a.machine.CPUs[0]
}

// tell says what concerns several GPUs in one note each.
func (a *adder) tell() {
	if len(a.away) > 0 {
		a.Note(0, "the places of GPUs on the bus are not in the PCI tree: "+strings.Join(a.away, ", ")+"; each counts as being at its NUMA "+
			"node without a switch", "containers hide the tree: mount /sys as it is")
	}
	if len(a.down) > 0 {
		a.Note(0, "NVLinks do not work: "+strings.Join(a.down, ", ")+"; those that do are counted",
			"this is right where bridges join some GPUs only; else nvidia-smi nvlink --status shows which")
	}
	if len(a.split) > 0 {
		a.Note(0, "GPUs are split into parts (MIG): "+strings.Join(a.split, ", ")+"; parts do not reach each other directly",
			"nvidia-smi -mig 0 makes them whole")
	}
}
