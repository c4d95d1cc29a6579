package sysfs

import (
	"path"
	"strconv"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

// rdmaDevices are those with ports that are active.
func (r *reader) rdmaDevices() (all []*ifc) {
	var down []string
	direct := r.peerMemory()
	for _, name := range r.list(rdmaFolder) {
		d := &ifc{name: name, folder: r.target(path.Join(rdmaFolder, name))}
		if d.folder == "" {
			d.folder = path.Join(rdmaFolder, name)
		}
		d.virtual, d.card = strings.Contains(d.folder, "devices/virtual/"), r.card(d.folder)
		node, _ := r.text(d.folder + "/node_guid")
		for _, number := range r.list(d.folder + "/ports") {
			p, active := r.rdmaPort(d, number)
			if !active {
				down = append(down, name+" port "+number)
				continue
			}
			p.GUID, p.GDR = guid(node), direct
			d.ports = append(d.ports, p)
		}
		if len(d.ports) > 0 {
			all = append(all, d)
			r.rdma = append(r.rdma, d)
		}
	}
	if len(down) > 0 {
		r.Note(0, "RDMA ports are not active and not counted: "+some(down), "look at the cable and the fabric's manager: ibstat shows why")
	}
	return all
}

// rdmaPort reads a port. Its network interface, if it has one, is by what people know it, so it is kept with it.
func (r *reader) rdmaPort(d *ifc, number string) (p *topo.Port, active bool) {
	folder := d.folder + "/ports/" + number
	n, err := strconv.Atoi(number)
	state, told := r.text(folder + "/state") // 4: ACTIVE
	if physical, ok := r.text(folder + "/phys_state"); err != nil || told && !strings.HasPrefix(state, "4:") ||
		ok && !strings.HasPrefix(physical, "5:") { // 5: LinkUp
		return nil, false
	}
	text, _ := r.text(folder + "/rate")
	mbps, known := rate(text)
	if !known {
		r.without = append(r.without, d.name)
	}
	p = &topo.Port{Name: d.name, Port: n, Mbps: mbps, MaxConn: rdmaConnections}
	if layer, ok := r.text(folder + "/link_layer"); ok {
		p.Extra = append(p.Extra, topo.Attr{Name: LinkLayer, Value: layer})
	}
	if name, ok := r.text(folder + "/gid_attrs/ndevs/0"); ok {
		p.Extra = append(p.Extra, topo.Attr{Name: Interface, Value: name})
	}
	return p, true
}

// Names of attributes of RDMA ports beside those that NCCL has.
const (
	LinkLayer = "link_layer" // InfiniBand or Ethernet
	Interface = "netdev"     // the network interface of the same port
)

// rdmaOf reports whether an interface is the other face of an RDMA port: the port names it, or both are on one function of the bus.
// Over InfiniBand ports do not name theirs.
func (r *reader) rdmaOf(card, name string) bool {
	for _, d := range r.rdma {
		for _, p := range d.ports {
			if InterfaceOf(p) == name {
				return true
			}
		}
	}
	for _, d := range r.rdma {
		if d.card != card {
			continue
		}
		for _, p := range d.ports {
			if InterfaceOf(p) == "" {
				p.Extra = append(p.Extra, topo.Attr{Name: Interface, Value: name})
				break
			}
		}
		return true
	}
	return false
}

// InterfaceOf is the network interface of an RDMA port, "" if it has none.
func InterfaceOf(p *topo.Port) string {
	for _, a := range p.Extra {
		if a.Name == Interface {
			return a.Value
		}
	}
	return ""
}
