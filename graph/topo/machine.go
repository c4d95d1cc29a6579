// Package topo is the model of one host's hardware as a network: what is in it, and how fast the parts reach each other.
//
//	Machine   the inventory, as a file or the kernel tells it: NUMA nodes, the PCI tree below each, GPUs, NICs and their ports
//	Clean     looks for what cannot be right, takes the bad part out and says so, with line and remedy (check*.go)
//	Graph     nodes and directed links with bandwidth and latency, made of a clean machine by NCCL's constants (build.go)
//
// The graph follows NCCL 2.30: parallel NVLinks add up, all NVSwitches are one node, two levels of Broadcom switches are one,
// every two NUMA nodes are joined, a GPU that is a rank hangs on its device. Bandwidths are those that NCCL assumes (speeds.go), so
// that figures can be compared; measured ones may replace them.
//
// It is pure data: it reads no file and knows no communicator. Package ncclxml makes a Machine of NCCL's XML, package sysfs of the
// running machine; package path finds the way between two devices of a Graph; package pack lays rings and trees over it.
package topo

// Machine is one host as found or read, before anything is concluded from it.
type Machine struct {
	CPUs []*CPU
}

// CPU is a NUMA node.
type CPU struct {
	Line     int // in the file it was read from, 0 elsewhere; so everywhere below
	NUMA     int // -1: the kernel does not say
	Affinity string
	Arch     string // x86_64, arm64, ppc64
	Vendor   string // as CPUID says: GenuineIntel, AuthenticAMD
	Family   int
	Model    int
	Devices  []*Device
	Extra    []Attr
}

// Attr is what a file says beside what is known here; it is written back as it was.
type Attr struct{ Name, Value string }

// Device is a PCI device or bridge. One without a BusID is the place of NICs that are on no bus: virtual ones, and those of
// plugins that do not tell.
type Device struct {
	Line  int
	BusID string // domain:bus:device.function as the source spells it
	Class Class
	IDs   IDs
	Speed string // of its link to the parent, per lane, as the kernel spells it: "16.0 GT/s PCIe"
	Width int    // lanes; 0: not known
	GPUs  []*GPU // more than one: partitions of one GPU
	NIC   *NIC
	Below []*Device
	Extra []Attr
}

// IDs name the maker and the product of a PCI device. Given is false where the source has none of them.
type IDs struct {
	Given                                 bool
	Vendor, Device, SubVendor, SubProduct int
}

// GPU is what a rank computes on.
type GPU struct {
	Line    int
	Number  int // CUDA's number of the device
	Rank    int // -1: none uses it
	SM      int // compute capability, 90 for 9.0
	GDR     bool
	NVLinks []*NVLink
	C2C     []*ChipLink
	Extra   []Attr
}

// NVLink is a bundle of links of one GPU to one other end.
type NVLink struct {
	Line   int
	Target string // bus id of the other end
	Class  Class  // what the other end is: another GPU, an NVSwitch, a CPU
	Count  int
}

// ChipLink is the C2C link between a GPU and the CPU on its module.
type ChipLink struct {
	Line  int
	Count int
	MBps  int // of one of Count
}

// NIC is a network card: a place on the bus, and ports.
type NIC struct {
	Line  int
	Ports []*Port
}

// Port is one way out of the host that transports can use.
type Port struct {
	Line    int
	Name    string // of the interface or RDMA device
	Number  int    // of the device in its plugin; -1: none
	Mbps    int    // 0 or less: not known
	Port    int
	Latency float64 // us
	GUID    string
	MaxConn int
	GDR     bool
	Coll    bool // the network behind it can reduce
	Off     bool // present, but not for point-to-point traffic
	Extra   []Attr
}

// Walk visits all devices in the order of the source, parents first.
func (m *Machine) Walk(visit func(cpu *CPU, d *Device)) {
	for _, c := range m.CPUs {
		walk(c.Devices, func(d *Device) { visit(c, d) })
	}
}

func walk(devices []*Device, visit func(*Device)) {
	for _, d := range devices {
		visit(d)
		walk(d.Below, visit)
	}
}

// GPUs are all GPUs in the order of the source, with the devices they sit on.
func (m *Machine) GPUs(visit func(d *Device, g *GPU)) {
	m.Walk(func(_ *CPU, d *Device) {
		for _, g := range d.GPUs {
			visit(d, g)
		}
	})
}
