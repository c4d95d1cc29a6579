package topo

import (
	"fmt"
	"regexp"
	"slices"

	"hccl.dev/hccl/internal/plural"
)

// Clean takes out of a machine what cannot be right, and reports it. What it leaves can be built into a graph. What is odd but can
// be as it says is a note.
func Clean(m *Machine, r *Report) {
	c := &cleaner{Machine: m, Report: r}
	c.cpus()
	c.places()
	c.gpus()
	c.ports()
	c.nvlinks()
	c.flatness()
	c.completeness()
}

type cleaner struct {
	*Machine
	*Report
}

// cpus joins NUMA nodes that have one number and looks at what decides the bandwidth between them.
func (c *cleaner) cpus() {
	seen := map[int]*CPU{}
	c.CPUs = slices.DeleteFunc(c.CPUs, func(cpu *CPU) bool {
		first, again := seen[cpu.NUMA]
		if again {
			c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d is there twice; its devices are counted to the one of line %d", cpu.NUMA, first.Line),
				"give each <cpu> its own numaid")
			first.Devices = append(first.Devices, cpu.Devices...)
			return true
		}
		seen[cpu.NUMA] = cpu
		c.cpu(cpu)
		return false
	})
	if len(c.CPUs) == 0 {
		c.Fault(0, "there is no NUMA node, and so no device", "put the devices into <cpu> elements")
	}
}

var affinity = regexp.MustCompile(`^[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{1,8})*$`)

func (c *cleaner) cpu(cpu *CPU) {
	bus := fmt.Sprintf("the links between NUMA nodes count as %.4g GB/s", cpu.busBW())
	switch {
	case cpu.Arch == "":
		c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d has no arch; %s, and NCCL does not start with such a file", cpu.NUMA, bus),
			"write arch=\"x86_64\", \"arm64\" or \"ppc64\"")
	case cpu.Arch != "x86_64" && cpu.Arch != "arm64" && cpu.Arch != "ppc64":
		c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d has arch %.40q, which is not known; %s", cpu.NUMA, cpu.Arch, bus),
			"write arch=\"x86_64\", \"arm64\" or \"ppc64\"")
	case cpu.Arch == "x86_64":
		c.x86(cpu, bus)
	}
	if cpu.Affinity != "" && !affinity.MatchString(cpu.Affinity) {
		c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d has an affinity that is no mask of processors; it is ignored", cpu.NUMA),
			"write groups of 8 hexadecimal digits with commas, as in /sys/devices/system/node/node0/cpumap")
		cpu.Affinity = ""
	}
	if cpu.NUMA < 0 {
		c.Note(cpu.Line, "the NUMA node has no number (-1), as on many virtual machines: which devices are near each other is not known",
			"let the machine tell its NUMA nodes, or write the tree of the real host")
	}
}

func (c *cleaner) x86(cpu *CPU, bus string) {
	switch {
	case cpu.Vendor == "":
		c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d has no vendor; %s, and NCCL does not start with such a file", cpu.NUMA, bus),
			"write vendor=\"GenuineIntel\" or \"AuthenticAMD\"")
	case !slices.Contains([]string{intel, amd, zhaoxin, shanghai}, cpu.Vendor):
		c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d has vendor %.40q, which is not known; %s", cpu.NUMA, cpu.Vendor, bus),
			"write the vendor as /proc/cpuinfo has it: \"GenuineIntel\" or \"AuthenticAMD\"")
	case cpu.Vendor == intel && (cpu.Family == 0 || cpu.Model == 0):
		c.Fault(cpu.Line, fmt.Sprintf("NUMA node %d has no familyid or modelid; %s, as on the oldest", cpu.NUMA, bus),
			"write them as /proc/cpuinfo has them: cpu family and model")
	}
}

// flatness notices a PCI tree without switches where there must be some: a NUMA node does not have that many wide ports.
func (c *cleaner) flatness() {
	for _, cpu := range c.CPUs {
		if gpus, cards, flat := cpu.flat(); flat {
			c.Note(cpu.Line, fmt.Sprintf("the PCI tree is flat: %s and %s hang on NUMA node %d without a switch, as virtual machines "+
				"show it; paths between them count as going through the CPU", plural.Of(gpus, "GPU"), plural.Of(cards, "NIC"), cpu.NUMA),
				"write the switches of the real host into the file, or trust measured rates")
		}
	}
}

func (cpu *CPU) flat() (gpus, cards int, flat bool) {
	switches := 0
	walk(cpu.Devices, func(d *Device) {
		gpus += len(d.GPUs)
		if d.NIC != nil {
			cards++
		}
		if len(d.Below) > 0 {
			switches++
		}
	})
	return gpus, cards, switches == 0 && gpus >= 2 && (cpu.NUMA < 0 || gpus >= 4 && cards > 0)
}

// Flat reports whether nothing is known of what is near what: the PCI tree is flat, and no NVLinks join the GPUs.
func (m *Machine) Flat() bool {
	flat, linked := false, false
	for _, cpu := range m.CPUs {
		_, _, f := cpu.flat()
		flat = flat || f
	}
	m.GPUs(func(_ *Device, g *GPU) { linked = linked || len(g.NVLinks) > 0 })
	return flat && !linked
}

// completeness notices a file that lists places only: NCCL fills in what it finds there on the running machine.
func (c *cleaner) completeness() {
	gpus, cards := 0, 0
	c.Walk(func(_ *CPU, d *Device) {
		if len(d.GPUs) == 0 && d.NIC == nil {
			switch d.Class.Role() {
			case RoleGPU:
				gpus++
			case RoleNIC:
				cards++
			}
		}
	})
	if gpus+cards > 0 {
		c.Note(0, fmt.Sprintf("%s and %s: places on the bus only, without <gpu> and <net> entries", plural.Of(gpus, "GPU"),
			plural.Of(cards, "NIC")),
			"this is right for a file that is completed on the machine; add the entries to search in the file alone")
	}
}
