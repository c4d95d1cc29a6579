package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

const (
	netFolder  = "sys/class/net"
	rdmaFolder = "sys/class/infiniband"
	loopback   = "772" // in the file type of an interface
)

// What NCCL's transports say of how many connections a port can hold.
const (
	rdmaConnections   = 131072
	socketConnections = 65536
)

// ifc is a network interface, or an RDMA device with its ports.
type ifc struct {
	name, folder string
	card         string // bus id of the card, "" if it is on no PCI bus
	virtual      bool   // made by software alone
	ports        []*topo.Port
}

// ports finds the ways out of the host. RDMA devices carry the traffic where there are any, and the interfaces of other cards stand
// beside them, marked as not used; interfaces that software makes count where there is nothing else.
func (r *reader) ports() {
	rdma, nics := r.rdmaDevices(), r.interfaces()
	real := func(i *ifc) bool { return !i.virtual }
	all := slices.DeleteFunc(slices.Concat(rdma, nics), func(i *ifc) bool { return i.virtual })
	if !slices.ContainsFunc(slices.Concat(rdma, nics), real) {
		all = slices.Concat(rdma, nics)
	}
	carrying := slices.ContainsFunc(all, func(i *ifc) bool { return slices.Contains(rdma, i) })
	number := 0
	for _, i := range all {
		for _, p := range i.ports {
			p.Number, p.Off = number, carrying && !slices.Contains(rdma, i)
			number++
		}
		nic := r.nic(i)
		nic.Ports = append(nic.Ports, i.ports...)
	}
	if number == 0 {
		r.Note(0, "there is no network interface that is up, and no RDMA device", "this is right for a job on one host")
	}
	r.idle()
}

// nic is the card that an interface belongs to. All functions of a card share its place, that of the first, and its link.
func (r *reader) nic(i *ifc) *topo.NIC {
	d := r.nowhere(i)
	if i.card != "" {
		id := i.card
		if first := id[:len(id)-1] + "0"; r.class[first].Role() == topo.RoleNIC {
			id = first
		}
		d = r.device(id)
	}
	if d.NIC == nil {
		d.NIC = &topo.NIC{}
	}
	return d.NIC
}

// nowhere is the place of cards that are on no bus, one for each NUMA node; the first, if they do not say theirs.
func (r *reader) nowhere(i *ifc) *topo.Device {
	if i.card != "" {
		return nil
	}
	cpu := r.machine.CPUs[0]
	if n := r.numa(i.folder + "/device"); n >= 0 {
		cpu = r.cpu(n)
	}
	for _, d := range cpu.Devices {
		if d.BusID == "" {
			return d
		}
	}
	d := &topo.Device{}
	cpu.Devices = append(cpu.Devices, d)
	return d
}

// card is the last place on the PCI bus in a path, if there a network card is: other devices have interfaces too, such as USB's.
func (r *reader) card(folder string) string {
	parts := strings.Split(folder, "/")
	for _, part := range slices.Backward(parts) {
		if class, known := r.class[part]; known {
			if class.Role() == topo.RoleNIC {
				return part
			}
			return ""
		}
	}
	return ""
}

func (r *reader) list(folder string) []string {
	names, err := r.names(folder)
	if err != nil && len(names) == 0 && !errors.Is(err, fs.ErrNotExist) {
		r.Note(0, fmt.Sprintf("%s cannot be read: %s", folder, cause(err)), "mount /sys as it is")
	}
	return names
}

// interfaces are those that are up, without those of RDMA devices.
func (r *reader) interfaces() (all []*ifc) {
	var down []string
	for _, name := range r.list(netFolder) {
		i := &ifc{name: name, folder: r.target(path.Join(netFolder, name))}
		if i.folder == "" {
			i.folder = path.Join(netFolder, name)
		}
		kind, ok := r.text(i.folder + "/type")
		if kind == loopback || !ok { // the folder holds other things too, such as the list of bonds
			continue
		}
		i.virtual, i.card = strings.Contains(i.folder, "devices/virtual/"), r.card(i.folder)
		switch {
		case i.card != "" && r.rdmaOf(i.card, name):
		case !r.up(i.folder):
			down = append(down, name)
		default:
			i.ports = []*topo.Port{r.port(i)}
			all = append(all, i)
		}
	}
	if len(down) > 0 {
		r.Note(0, "interfaces are down and not counted: "+some(down), "ip link set NAME up, if they are meant to be used")
	}
	return all
}

// up reports whether an interface can carry traffic. Those that do not know have a carrier or say nothing.
func (r *reader) up(folder string) bool {
	state, ok := r.text(folder + "/operstate")
	if !ok || state == "unknown" {
		carrier, told := r.text(folder + "/carrier")
		return !told || carrier == "1"
	}
	return state == "up"
}

func (r *reader) port(i *ifc) *topo.Port {
	mbps, known := r.speed(i.folder)
	if !known {
		r.without = append(r.without, i.name)
	}
	return &topo.Port{Name: i.name, Mbps: mbps, MaxConn: socketConnections}
}

// summary tells what concerns several devices in one note each.
func (r *reader) summary() {
	if len(r.without) > 0 {
		r.Note(0, fmt.Sprintf("the speed of ports is not told: %s; they count as %d Gb/s", some(r.without), usual/1000),
			"virtual cards do not know it; measured rates tell")
	}
	if len(r.narrow) > 0 {
		r.Note(0, "links of devices have fewer lanes than both ends could have: "+some(r.narrow)+"; those that work are counted",
			"seat the card anew, or look for a slot that is wired for all lanes")
	}
}

// idle tells of cards without interface or RDMA device. Virtual functions are made to be given away.
func (r *reader) idle() {
	var ids []string
	for id, class := range r.class {
		if class.Role() == topo.RoleNIC && r.devices[id] == nil && r.devices[id[:len(id)-1]+"0"] == nil && r.target(r.paths[id]+"/physfn") == "" {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		r.Note(0, "network cards have no port that is up: "+some(ids), "look for a driver or a cable, if they are meant to be used")
	}
}

// some names a few of many.
func some(names []string) string {
	const few = 8
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
