package pack

import (
	"math/rand"
	"strings"
	"testing"
)

func TestWhatIsFoundVerifies(t *testing.T) {
	r := rand.New(rand.NewSource(9))
	for k := range 100 {
		n := random(r)
		n.Cut = k%4 == 0
		for _, hosts := range []int{1, 3} {
			limit := Bound(n, hosts)
			rings, trees := Rings(n, hosts, limit, Thorough), Trees(n, hosts, limit, Thorough)
			if err := rings.Verify(n, hosts); err != nil {
				t.Errorf("%s: rings: %v", name(n), err)
			}
			if err := trees.Verify(n, hosts); err != nil {
				t.Errorf("%s: trees: %v", name(n), err)
			}
		}
	}
}

func TestVerifyFindsWrongRings(t *testing.T) {
	n := nvswitch(4)
	for what, c := range map[string]struct {
		hosts int
		spoil func(p *RingPacking)
		want  string
	}{
		"too heavy":        {1, func(p *RingPacking) { p.Rings[0].Weight *= 1.1 }, "carries"},
		"said to be more":  {1, func(p *RingPacking) { p.Bus *= 1.1 }, "said to be"},
		"no weight":        {1, func(p *RingPacking) { p.Rings[0].Weight = 0 }, "weight"},
		"a GPU twice":      {1, func(p *RingPacking) { p.Rings[0].Segments[0].GPUs = []int{0, 1, 1, 2} }, "once"},
		"a GPU left out":   {1, func(p *RingPacking) { p.Rings[0].Segments[0].GPUs = []int{0, 1, 2} }, "not passed"},
		"no such GPU":      {1, func(p *RingPacking) { p.Rings[0].Segments[0].GPUs = []int{0, 1, 2, 9} }, "once"},
		"no GPUs":          {2, func(p *RingPacking) { p.Rings[0].Segments = append(p.Rings[0].Segments, Segment{}) }, "without"},
		"no such port":     {2, func(p *RingPacking) { p.Rings[0].Segments[0].Out = 7 }, "port"},
		"closed too early": {2, func(p *RingPacking) { p.Rings[0].Segments[0].In, p.Rings[0].Segments[0].Out = -1, -1 }, "port"},
	} {
		p := ringsOf(t, n, c.hosts)
		c.spoil(&p)
		if err := p.Verify(n, c.hosts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %q", what, err, c.want)
		}
	}
}

func TestVerifyFindsWrongTrees(t *testing.T) {
	n := nvswitch(4)
	for what, c := range map[string]struct {
		spoil func(p *TreePacking)
		want  string
	}{
		"too much":          {func(p *TreePacking) { p.scale(1.1, 2, 4) }, ""},
		"no weight":         {func(p *TreePacking) { p.Trees[0].Weight = -1 }, "weight"},
		"a share too much":  {func(p *TreePacking) { p.Share *= 1.1 }, "sends"},
		"said to be more":   {func(p *TreePacking) { p.Bus *= 1.1 }, "said to make"},
		"an edge too few":   {func(p *TreePacking) { p.Trees[0].Edges = p.Trees[0].Edges[1:] }, "not reached"},
		"an edge twice":     {func(p *TreePacking) { p.Trees[0].Edges = append(p.Trees[0].Edges, p.Trees[0].Edges[0]) }, "already"},
		"a broken route":    {func(p *TreePacking) { p.Trees[0].Edges[0].Route = p.Trees[0].Edges[0].Route[1:] }, "breaks"},
		"a route too short": {func(p *TreePacking) { p.Trees[0].Edges[0].Route = p.Trees[0].Edges[0].Route[:1] }, "ends"},
		"no such link":      {func(p *TreePacking) { p.Trees[0].Edges[0].Route = []int{99} }, "link 99"},
		"inside the host":   {func(p *TreePacking) { p.Spreads[0].Enter[0].Back = nil }, "ends"},
		"nothing elsewhere": {func(p *TreePacking) { p.Spreads = nil }, "sends"},
	} {
		p := treesOf(t, n, 2)
		c.spoil(&p)
		if err := p.Verify(n, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %q", what, err, c.want)
		}
	}
}

// FuzzSearch makes a network of any bytes: whatever it is, the search ends, and what it finds holds.
func FuzzSearch(f *testing.F) {
	f.Add([]byte{3, 1, 1, 2, 0, 1, 9, 1, 2, 9, 2, 0, 9, 0, 3, 4, 3, 4, 4, 4, 3, 4, 3, 0, 4})
	f.Add([]byte{2, 0, 0, 1, 0, 1, 200})
	f.Fuzz(func(t *testing.T, in []byte) {
		n, hosts := anyNetwork(in)
		if n == nil {
			return
		}
		e := Effort{Slack: 0.01, Rounds: 30, Work: 1e9}
		limit := Bound(n, hosts)
		rings, trees := Rings(n, hosts, limit, e), Trees(n, hosts, limit, e)
		if err := rings.Verify(n, hosts); err != nil {
			t.Errorf("rings: %v", err)
		}
		if err := trees.Verify(n, hosts); err != nil {
			t.Errorf("trees: %v", err)
		}
		for what, bus := range map[string]float64{"rings": rings.Bus, "trees": trees.Bus} {
			if bus > limit.Bus*(1+holdsTo) {
				t.Errorf("%s of %g, no schedule exceeds %g", what, bus, limit.Bus)
			}
		}
	})
}

// anyNetwork takes counts of GPUs, ports and switches, hosts, and then from, to and capacity of each link.
func anyNetwork(in []byte) (*Network, int) {
	if len(in) < 7 {
		return nil, 0
	}
	gpus, ports, switches, hosts := int(in[0]%8), int(in[1]%4), int(in[2]%6), 1+int(in[3]%5)
	b := build(gpus + ports + switches)
	if b.Nodes == 0 {
		return nil, 0
	}
	for at := 4; at+2 < len(in); at += 3 {
		from, to := int(in[at])%b.Nodes, int(in[at+1])%b.Nodes
		b.link(from, to, float64(1+int(in[at+2]))/float64(1+from))
	}
	b.Cut = in[3]&64 > 0
	var devices []int
	for k := range gpus + ports {
		devices = append(devices, k)
	}
	return b.done(devices[:gpus], devices[gpus:]), hosts
}
