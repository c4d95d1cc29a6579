package ncclxml

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"hccl.dev/hccl/graph/topo"
)

// fits reports whether a channel can be: every GPU once, and only what the machine has.
func (r *reader) fits(e *element, c *Channel, g *topo.Graph) bool {
	seen := map[int]bool{}
	if len(c.GPUs) == 0 {
		r.fault(e, "a channel passes no GPU and is ignored", "pass every GPU once")
		return false
	}
	for _, dev := range c.GPUs {
		if seen[dev] {
			r.fault(e, fmt.Sprintf("a channel passes GPU %d twice and is ignored", dev), "pass every GPU once")
			return false
		}
		seen[dev] = true
	}
	if g == nil {
		return true
	}
	gpus, ports := devices(g)
	for _, n := range g.GPUs {
		if dev := g.Nodes[n].GPU.Number; !seen[dev] {
			r.fault(e, fmt.Sprintf("a channel misses GPU %d and is ignored", dev), "pass every GPU of the host once")
			return false
		}
	}
	if len(seen) > len(gpus) {
		r.fault(e, fmt.Sprintf("a channel passes %d GPUs where the host has %d, and is ignored", len(seen), len(gpus)),
			"is the file of this host?")
		return false
	}
	for _, port := range []int{c.In, c.Out} {
		if port >= 0 && !ports[port] {
			r.fault(e, fmt.Sprintf("a channel uses port %d, which the host does not have, and is ignored", port), "is the file of this host?")
			return false
		}
	}
	return true
}

// devices are the numbers of the machine's GPUs and ports.
func devices(g *topo.Graph) (gpus, ports map[int]bool) {
	gpus, ports = map[int]bool{}, map[int]bool{}
	for _, n := range g.GPUs {
		gpus[g.Nodes[n].GPU.Number] = true
	}
	for _, n := range g.Ports {
		ports[g.Nodes[n].Port.Number] = true
	}
	return gpus, ports
}

// WriteSearches writes a graph file that NCCL and ReadSearches accept.
func WriteSearches(out io.Writer, all []Search) error {
	w := &writer{out: bufio.NewWriter(out)}
	w.open("graphs", pairs{}.number("version", 1), nil)
	for _, s := range all {
		w.search(s)
	}
	w.end("graphs")
	return w.out.Flush()
}

func (p pairs) fraction(name string, x float64) pairs {
	return p.text(name, strconv.FormatFloat(x, 'g', -1, 64))
}

func (w *writer) search(s Search) {
	p := pairs{}.number("id", int(s.ID)).number("pattern", int(s.Pattern)).number("crossnic", s.CrossNIC).
		number("nchannels", len(s.Channels)).fraction("speedintra", s.Intra).fraction("speedinter", s.Inter).
		fraction("latencyinter", s.LatencyInter).text("typeintra", s.TypeIntra.String()).text("typeinter", s.TypeInter.String()).
		flag("samechannels", s.Same)
	if len(s.Channels) == 0 {
		w.leaf("graph", p, nil)
		return
	}
	w.open("graph", p, nil)
	for _, c := range s.Channels {
		w.channel(c)
	}
	w.end("graph")
}

func (w *writer) channel(c Channel) {
	var p pairs
	if c.Weight > 0 {
		p = p.fraction("weight", c.Weight)
	}
	w.open("channel", p, nil)
	w.port(c.In)
	for _, dev := range c.GPUs {
		w.leaf("gpu", pairs{}.number("dev", dev), nil)
	}
	w.port(c.Out)
	w.end("channel")
}

func (w *writer) port(dev int) {
	if dev >= 0 {
		w.leaf("net", pairs{}.number("dev", dev), nil)
	}
}
