package fabric

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// fileForm is a fabric as a person writes it:
//
//	{"hosts": ["n0", "n1"], "switches": [{"name": "leaf0", "group": 0}, {"name": "spine0"}],
//	 "links": [{"a": "n0", "b": "leaf0", "gbps": 25}, {"a": "leaf0", "b": "spine0", "gbps": 100, "length": 3}]}
//
// gbps is 10^9 bytes per second each way; group and length may be left out.
type fileForm struct {
	Hosts    []string     `json:"hosts"`
	Switches []switchForm `json:"switches"`
	Links    []linkForm   `json:"links"`
}

type switchForm struct {
	Name  string `json:"name"`
	Group *int   `json:"group,omitempty"`
}

type linkForm struct {
	A      string  `json:"a"`
	B      string  `json:"b"`
	GBps   float64 `json:"gbps"`
	Length float64 `json:"length,omitempty"`
}

// ReadFile reads a fabric from JSON.
func ReadFile(text []byte) (*Fabric, error) {
	if len(text) > MostBytes {
		return nil, fmt.Errorf("a fabric of %d bytes: at most %d are read", len(text), MostBytes)
	}
	var form fileForm
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&form); err != nil {
		return nil, fmt.Errorf("the fabric cannot be read: %w; wanted are hosts, switches and links (docs/topology.md)", err)
	}
	f := New()
	for _, h := range form.Hosts {
		if _, err := f.Add(h, Host, -1); err != nil {
			return nil, err
		}
	}
	for _, s := range form.Switches {
		group := -1
		if s.Group != nil {
			group = *s.Group
		}
		if _, err := f.Add(s.Name, Switch, group); err != nil {
			return nil, err
		}
	}
	for i, l := range form.Links {
		if err := f.fromForm(l); err != nil {
			return nil, fmt.Errorf("link %d of the fabric: %w", i, err)
		}
	}
	return f, nil
}

func (f *Fabric) fromForm(l linkForm) error {
	a, b := f.Find(l.A), f.Find(l.B)
	for name, n := range map[string]int{l.A: a, l.B: b} {
		if n < 0 {
			return fmt.Errorf("%q is neither among the hosts nor among the switches", name)
		}
	}
	if l.Length == 0 {
		l.Length = 1
	}
	return f.ConnectFar(a, b, l.GBps, l.Length)
}

// Write gives the fabric in the form that ReadFile takes.
func (f *Fabric) Write() ([]byte, error) {
	var form fileForm
	for _, n := range f.Nodes {
		if n.Kind == Host {
			form.Hosts = append(form.Hosts, n.Name)
			continue
		}
		s := switchForm{Name: n.Name}
		if n.Group >= 0 {
			s.Group = &n.Group
		}
		form.Switches = append(form.Switches, s)
	}
	for _, l := range f.Links {
		if l.From > l.To {
			continue // the other direction
		}
		form.Links = append(form.Links, linkForm{f.Nodes[l.From].Name, f.Nodes[l.To].Name, l.GBps, l.Length})
	}
	return json.MarshalIndent(form, "", " ")
}
