package sysfs

import (
	"fmt"
	"strconv"
	"strings"

	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/cpuset"
)

const (
	nodes     = "sys/devices/system/node"
	mostNodes = 1024 // as Linux can have at most
)

// cpus makes the NUMA nodes that are in use. A machine that names none is one node with all its processors.
func (r *reader) cpus(goarch string) {
	r.template = r.processor(goarch)
	text, _ := r.text(nodes + "/online")
	online, err := cpuset.Parse(text)
	if err != nil || online.Empty() || online.Len() > mostNodes {
		r.Note(0, "the kernel shows no NUMA nodes ("+nodes+"); all processors and devices count as near each other",
			"this is right for a machine with one; containers may hide the others: mount /sys as it is")
		all, _ := r.text("sys/devices/system/cpu/online")
		set, _ := cpuset.Parse(all)
		r.add(0, set)
		return
	}
	var vague []string
	for _, n := range online.All() {
		folder := nodes + "/node" + strconv.Itoa(n)
		set, ok := r.processors(folder)
		if !ok {
			vague = append(vague, strconv.Itoa(n))
		}
		c := r.add(n, set)
		if d, ok := r.text(folder + "/distance"); ok && online.Len() > 1 && plainNumbers(d) {
			c.Extra = append(c.Extra, topo.Attr{Name: "distance", Value: d})
		}
	}
	if len(vague) > 0 {
		r.Note(0, fmt.Sprintf("which processors NUMA nodes have is not told (%s/node*/cpumap): %s", nodes, some(vague)),
			"threads are not placed by them; mount /sys as it is")
	}
}

func plainNumbers(text string) bool {
	for f := range strings.FieldsSeq(text) {
		if _, err := strconv.ParseUint(f, 10, 8); err != nil {
			return false
		}
	}
	return text != ""
}

// processors are those of a NUMA node, by its mask or its list.
func (r *reader) processors(folder string) (cpuset.Set, bool) {
	mask, _ := r.text(folder + "/cpumap")
	if set, err := cpuset.ParseMask(mask); err == nil {
		return set, true
	}
	list, ok := r.text(folder + "/cpulist")
	set, err := cpuset.Parse(list)
	return set, ok && err == nil
}

// add makes a NUMA node.
func (r *reader) add(numa int, processors cpuset.Set) *topo.CPU {
	c := r.template
	c.NUMA = numa
	if !processors.Empty() {
		c.Affinity = processors.Mask()
	}
	r.machine.CPUs = append(r.machine.CPUs, &c)
	return &c
}

// cpu is the NUMA node of a device. With one node the device has no choice; many virtual machines and firmwares do not say it then.
func (r *reader) cpu(numa int) *topo.CPU {
	for _, c := range r.machine.CPUs {
		if c.NUMA == numa || len(r.machine.CPUs) == 1 && numa < 0 {
			return c
		}
	}
	if numa >= 0 {
		r.Note(0, fmt.Sprintf("devices are on NUMA node %d, which is not among the kernel's NUMA nodes (%s/online)", numa, nodes),
			"it counts as one of its own without processors; mount /sys as it is")
	}
	return r.add(numa, cpuset.Set{})
}

// numa is what a device's own file says, -1 for nothing.
func (r *reader) numa(folder string) int {
	if n, ok := r.number(folder + "/numa_node"); ok && n >= 0 && n < cpuset.Most {
		return n
	}
	return -1
}

var archs = map[string]string{"amd64": "x86_64", "386": "x86_64", "arm64": "arm64", "ppc64le": "ppc64", "ppc64": "ppc64"}

// processor is the kind of processor by what the first one says of itself.
func (r *reader) processor(goarch string) (c topo.CPU) {
	info, ok := r.lines("proc/cpuinfo", "vendor_id", "cpu family", "model\t", "model ", "CPU implementer", "cpu\t")
	said := fields(info)
	switch {
	case said["vendor_id"] != "":
		c = topo.CPU{Arch: "x86_64", Vendor: said["vendor_id"], Family: plain(said["cpu family"]), Model: plain(said["model"])}
	case said["CPU implementer"] != "":
		c.Arch = "arm64"
	case strings.HasPrefix(said["cpu"], "POWER"):
		c.Arch = "ppc64"
	default:
		c.Arch = archs[goarch]
		why := "says nothing of the kind"
		if !ok {
			why = "cannot be read"
		}
		r.Note(0, "what processor this is is not known: proc/cpuinfo "+why, "the links between NUMA nodes count as the slowest of its kind")
		if c.Arch == "x86_64" {
			c.Vendor, c.Family, c.Model = "GenuineIntel", 6, 1
		}
	}
	return c
}

// fields are the lines of proc/cpuinfo, name and value. A vendor of blanks and letters keeps its blanks.
func fields(info string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimRight(name, " \t")
		if _, before := all[name]; ok && !before {
			all[name] = strings.TrimPrefix(strings.TrimRight(value, "\n"), " ")
		}
	}
	return all
}

func plain(text string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}
