package topo

import "time"

// Kind tells what a node is.
type Kind uint8

// The kinds of nodes.
const (
	GPUNode      Kind = iota // a rank's GPU; hangs on its device
	DeviceNode               // the GPU as hardware: it holds the NVLink and PCI links
	SwitchNode               // PCI switch or bridge
	NVSwitchNode             // all NVSwitches of the host
	CPUNode                  // NUMA node
	NICNode                  // network card
	PortNode                 // port of a card: the way out
)

var kindNames = [...]string{"GPU", "GPU device", "PCI switch", "NVSwitch", "NUMA node", "NIC", "port"}

func (k Kind) String() string { return kindNames[k] }

// LinkType tells what a link is made of.
type LinkType uint8

// The types of links.
const (
	LOC LinkType = iota // inside a device
	NVL                 // NVLink
	C2C                 // chip to chip
	PCI
	SYS // between NUMA nodes
	NET // from a card to its port
)

var linkNames = [...]string{"LOC", "NVL", "C2C", "PCI", "SYS", "NET"}

func (t LinkType) String() string { return linkNames[t] }

// Link is one direction; the other one is a link of its own.
type Link struct {
	From, To  int // nodes
	Type      LinkType
	Bandwidth float64 // GB/s
	Latency   time.Duration
	Reverse   int // the link of the same type back, -1 if there is none
}

// Node is a place where data pass or end. Of what it stands for one of the pointers is set, or none (NVSwitches; cards without a bus id).
type Node struct {
	Kind Kind
	// Name is unique in a sound file: gpu0 (of the rank), net0, pci<bus id>, nic<bus id>, nic@ for all cards without a bus id,
	// cpu<NUMA number>, nvs. A GPU and its device have one name.
	Name string
	// Out are the links that leave the node, widest first, the one towards the CPU last: the order in which NCCL looks at them,
	// and by which equal paths are told apart.
	Out []int

	CPU    *CPU
	Device *Device
	GPU    *GPU
	Port   *Port
}

// Graph is one host. Lists of nodes are in the order of the source.
type Graph struct {
	Nodes []Node
	Links []Link
	GPUs  []int // nodes of kind GPUNode
	Ports []int
	CPUs  []int
}

// DeviceOf is the device that a GPU hangs on, and any other node itself.
func (g *Graph) DeviceOf(node int) int {
	if g.Nodes[node].Kind == GPUNode {
		return g.Links[g.Nodes[node].Out[0]].To
	}
	return node
}

// Find is the node of the kind with the name, or -1.
func (g *Graph) Find(kind Kind, name string) int {
	for n := range g.Nodes {
		if g.Nodes[n].Kind == kind && g.Nodes[n].Name == name {
			return n
		}
	}
	return -1
}

// SM is the compute capability of a GPU or its device, 0 of other nodes.
func (g *Graph) SM(node int) int {
	if gpu := g.Nodes[node].GPU; gpu != nil {
		return gpu.SM
	}
	return 0
}
