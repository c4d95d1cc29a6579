// Package detect finds the machine that a process runs on, as its settings want it.
//
//	NCCL_TOPO_FILE, or the file that a cloud's service leaves    the machine as somebody wrote it: a virtual machine's real host
//	      │
//	      │  completed, complete.go       by what is here: a file may list places alone, and may be of another machine
//	      v
//	/sys, /proc (package sysfs), NVML (package gpus)             the machine as the kernel and the driver show it
//	      │
//	      v
//	topo.Clean ── a topo.Machine and a report ── NCCL_TOPO_DUMP_FILE
//
// It is the only package of graph that reads files. It fails for nothing: a file that cannot be used is a fault in the report, and
// the machine is then the one that was found.
package detect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/regular"
	"hccl.dev/hccl/internal/replace"
)

// Settings say what a machine is made of. The zero value is the running one.
type Settings struct {
	File string // a topology in NCCL's form to go by: NCCL_TOPO_FILE
	Dump string // the file to write the machine to: NCCL_TOPO_DUMP_FILE

	GPUs Finder // asks a driver for GPUs: gpus.Find; nil: they are places on the bus
	Root fs.FS  // of a recorded machine; nil: of this one
}

// Finder adds what a driver says of GPUs to a machine. direct: network cards can reach their memory. It returns the name of what it
// has asked; or "", and why there is nothing to ask. It is handed in, so that not every program is linked with a driver's interface.
type Finder func(m *topo.Machine, direct bool, r *topo.Report) (asked, why string)

// Found is a machine.
type Found struct {
	Machine *topo.Machine
	Report  *topo.Report // of faults in files and of what is odd here
	From    string       // for people: what the machine is made of
	File    string       // the one that it was made by, to which lines in the report belong; "" where there is none
	Unused  string       // why the file that was to be gone by is not; "": it is, or there is none
	// Plan is the machine that rings are laid for: Machine; but where a file has GPUs and this machine has none, the one in the file as
	// it is written, since somebody wants to see what would be done there.
	Plan *topo.Machine
}

// virtual is where the service of some clouds puts the topology of a virtual machine's host, and where NCCL looks for it.
const virtual = "var/run/nvidia-topologyd/virtualTopology.xml"

// Load finds the machine.
func Load(s Settings) *Found {
	if s.Root == nil {
		s.Root = os.DirFS("/")
	}
	f := s.running()
	if file, name := s.file(); name != "" {
		f.goBy(file, name)
	} else {
		topo.Clean(f.Machine, f.Report)
	}
	if f.Plan == nil {
		f.Plan = f.Machine
	}
	if s.Dump != "" {
		if err := Write(s.Dump, f.Machine); err != nil {
			f.Report.Fault(0, err.Error(), "name a file in a folder that this process may write to")
		}
	}
	f.Report.Sort()
	return f
}

// running is what /sys, /proc and a driver say.
func (s *Settings) running() *Found {
	m, report := sysfs.Read(s.Root, runtime.GOARCH)
	f := &Found{Machine: m, Report: report, From: "/sys and /proc"}
	if s.GPUs == nil {
		return f
	}
	if asked, why := s.GPUs(m, sysfs.PeerMemory(s.Root), report); asked != "" {
		f.From = "/sys, /proc and " + asked
	} else {
		f.From += " (" + why + ")"
	}
	return f
}

// file is the topology to go by and its name; "" if there is none.
func (s *Settings) file() (read func() (fs.File, error), name string) {
	if s.File != "" {
		return func() (fs.File, error) { return regular.Open(s.File) }, s.File
	}
	if _, err := fs.Stat(s.Root, virtual); err == nil {
		return func() (fs.File, error) { return s.Root.Open(virtual) }, "/" + virtual
	}
	return nil, ""
}

// goBy makes the machine that of a file, with what is here.
func (f *Found) goBy(open func() (fs.File, error), name string) {
	m, said, err := readFile(open)
	if err != nil {
		topo.Clean(f.Machine, f.Report)
		f.Unused = err.Error()
		f.Report.Fault(0, fmt.Sprintf("the topology in %s is not used: %v", name, err), "the machine is taken as "+f.From+" show it")
		return
	}
	if hasGPU(m) && !hasGPU(f.Machine) {
		f.Plan = m.Bare()
	}
	c := &completer{file: m, here: f.Machine, planned: f.Plan != nil, Report: f.Report}
	c.complete()
	again := &topo.Report{}
	topo.Clean(m, again)
	f.Report.Faults = distinct(slices.Concat(said.Faults, unsaid(again.Faults, said), f.Report.Faults))
	f.Report.Notes = distinct(slices.Concat(ofLines(said.Notes), unsaid(again.Notes, said), f.Report.Notes))
	f.Machine, f.File, f.From = m, name, name+", completed by "+f.From
}

// hasGPU reports whether a machine has a GPU that ranks could compute on, also one that no driver was asked for.
func hasGPU(m *topo.Machine) (found bool) {
	const nvidia = 0x10de
	m.Walk(func(_ *topo.CPU, d *topo.Device) {
		found = found || len(d.GPUs) > 0 || d.Class.Role() == topo.RoleGPU && d.IDs.Vendor == nvidia
	})
	return found
}

func readFile(open func() (fs.File, error)) (*topo.Machine, *topo.Report, error) {
	in, err := open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is no regular file")
	}
	return ncclxml.Read(in)
}

// ofLines are the notes about lines. The others are about the whole, which has changed since.
func ofLines(notes []topo.Fault) []topo.Fault {
	return slices.DeleteFunc(slices.Clone(notes), func(n topo.Fault) bool { return n.Line == 0 })
}

// unsaid are the findings in lines of which nothing was said before: in the others a part that is not here any more makes another fault
// of the same slip.
func unsaid(again []topo.Fault, said *topo.Report) []topo.Fault {
	lines := map[int]bool{}
	for _, f := range slices.Concat(said.Faults, said.Notes) {
		lines[f.Line] = f.Line > 0
	}
	return slices.DeleteFunc(again, func(f topo.Fault) bool { return lines[f.Line] })
}

func distinct(all []topo.Fault) (once []topo.Fault) {
	for _, f := range all {
		if !slices.Contains(once, f) {
			once = append(once, f)
		}
	}
	return once
}

// Write writes a machine to the file that NCCL_TOPO_DUMP_FILE names, in NCCL's form, all at once and without what was told as faults.
func Write(name string, m *topo.Machine) error {
	text := textOf(m)
	if again, report, err := ncclxml.Read(strings.NewReader(text)); err == nil && len(report.Faults) > 0 {
		topo.Mend(again) // a copy: m is still looked at
		text = textOf(again)
	}
	if err := replace.File(name, []byte(text)); err != nil {
		return fmt.Errorf("NCCL_TOPO_DUMP_FILE cannot be written: %s: %w", name, err)
	}
	return nil
}

func textOf(m *topo.Machine) string {
	var text strings.Builder
	_ = ncclxml.Write(&text, m) // a Builder takes everything
	return text.String()
}
