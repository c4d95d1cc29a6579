package fabric

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Neighbor is what an interface of a host is plugged into, as the switch says of itself by LLDP (IEEE 802.1AB).
type Neighbor struct {
	Interface string
	Switch    string // its name, or its chassis id where it has none
	Port      string
}

// MostBytes bounds what is read: a host has some dozens of interfaces.
const MostBytes = 16 << 20

// ReadLLDP reads what lldpd tells: the output of `lldpcli show neighbors -f json` or of `-f json0`. Neighbours that are no switches
// (other hosts say so by their capabilities) are left out.
func ReadLLDP(text []byte) ([]Neighbor, error) {
	if len(text) > MostBytes {
		return nil, fmt.Errorf("LLDP neighbours of %d bytes: at most %d are read", len(text), MostBytes)
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("LLDP neighbours are no JSON: %w; write them by lldpcli show neighbors -f json", err)
	}
	if member(root, "lldp") == nil {
		return nil, fmt.Errorf("LLDP neighbours have no member \"lldp\"; write them by lldpcli show neighbors -f json")
	}
	var found []Neighbor
	for _, lldp := range list(member(root, "lldp")) {
		for _, entry := range list(member(lldp, "interface")) {
			for name, body := range named(entry) {
				if n, ok := neighbor(name, body); ok {
					found = append(found, n)
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Neighbor) int { return strings.Compare(a.Interface, b.Interface) })
	return found, nil
}

// neighbor reads one interface: {"chassis": {"leaf1": {...}}, "port": {"id": {"value": ...}}}, or in json0 lists of objects.
func neighbor(name string, body any) (Neighbor, bool) {
	n := Neighbor{Interface: name}
	for _, chassis := range list(member(body, "chassis")) {
		for called, c := range named(chassis) {
			n.Switch = called
			if n.Switch == "" {
				n.Switch = value(member(c, "name"))
			}
			if n.Switch == "" {
				n.Switch = value(member(c, "id"))
			}
			if isHost(member(c, "capability")) {
				return n, false
			}
		}
	}
	for _, port := range list(member(body, "port")) {
		n.Port = value(member(port, "id"))
	}
	return n, n.Interface != "" && n.Switch != ""
}

// isHost tells whether of all capabilities that the neighbour has switched on none is a bridge's or router's.
func isHost(capabilities any) bool {
	host := false
	for _, c := range list(capabilities) {
		on, _ := member(c, "enabled").(bool)
		switch kind, _ := member(c, "type").(string); {
		case on && (kind == "Bridge" || kind == "Router"):
			return false
		case on:
			host = true
		}
	}
	return host
}

// list is v as a list: one object where lldpd has found one only.
func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

func member(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

// named are the members of an object that is keyed by name ({"eth0": {...}}); one that says its name inside ({"name": "eth0", ...})
// is its own only member. A chassis without a name has its parts at the top.
func named(v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if name, ok := m["name"].(string); ok {
		return map[string]any{name: m}
	}
	if _, ok := m["id"]; ok {
		return map[string]any{"": m}
	}
	return m
}

// value is the text of {"type": ..., "value": "swp1"}, also within a list.
func value(v any) string {
	for _, x := range list(v) {
		if s, ok := member(x, "value").(string); ok {
			return s
		}
	}
	return ""
}

// Seen is what one host tells of itself.
type Seen struct {
	Host      string
	Neighbors []Neighbor
	GBps      map[string]float64 // of each interface
}

// FromNeighbors makes a fabric of what the hosts see. Links between switches are not seen from hosts: a core that joins all switches
// without being a bottleneck is assumed, and said.
func FromNeighbors(seen []Seen) (*Fabric, error) {
	f := New()
	for _, s := range seen {
		host, err := f.Add(s.Host, Host, -1)
		if err != nil {
			return nil, err
		}
		for _, n := range s.Neighbors {
			gbps, ok := s.GBps[n.Interface]
			if !ok {
				return nil, fmt.Errorf("the speed of %s on host %s is not known", n.Interface, s.Host)
			}
			sw := f.Find(n.Switch)
			if sw < 0 {
				if sw, err = f.Add(n.Switch, Switch, -1); err != nil {
					return nil, err
				}
			}
			if err := f.Connect(host, sw, gbps); err != nil {
				return nil, err
			}
		}
	}
	return f, f.assumeCore()
}

// assumeCore joins the switches by one more that carries all that they take in.
func (f *Fabric) assumeCore() error {
	below := map[int]float64{}
	var switches []int
	for n := range f.Nodes {
		if f.Nodes[n].Kind == Switch {
			switches = append(switches, n)
		}
	}
	if len(switches) < 2 {
		return nil
	}
	for _, l := range f.Links {
		below[l.To] += l.GBps
	}
	core, err := f.Add("core (assumed)", Switch, -1)
	if err != nil {
		return err
	}
	f.Assumed = fmt.Sprintf("how the %d switches are joined cannot be seen from hosts: a core that carries all they take in is assumed",
		len(switches))
	for _, s := range switches {
		if err := f.Connect(s, core, below[s]); err != nil {
			return err
		}
	}
	return nil
}
