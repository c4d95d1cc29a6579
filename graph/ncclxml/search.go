package ncclxml

import (
	"fmt"
	"io"

	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// Search is one element of a graph file (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE): the channels that a search found for an algorithm.
//
//	<graphs version="1">
//	  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="12" speedinter="12" latencyinter="0" typeintra="SYS"
//	         typeinter="PIX" samechannels="0">
//	    <channel> <net dev="0"/> <gpu dev="0"/> <gpu dev="1"/> <net dev="0"/> </channel>
//	    ...
//	  </graph>
//	</graphs>
type Search struct {
	Line         int
	ID           ID
	Pattern      Pattern
	CrossNIC     int     // 1: in and out by different ports; 2: in pairs of channels
	Intra, Inter float64 // GB/s of one channel, inside hosts and between them
	LatencyInter float64 // us
	TypeIntra    path.Type
	TypeInter    path.Type
	Same         bool // all channels are alike
	Channels     []Channel
}

// Channel is an order of a host's GPUs, by their device numbers. In and Out are port numbers, -1 on a single host.
type Channel struct {
	Line    int
	In, Out int
	GPUs    []int
	// Weight is its bandwidth in GB/s where channels are unequal, else 0. NCCL does not know it and takes all for Intra wide.
	Weight float64
}

// ID tells which algorithm a search is for.
type ID int

// The algorithms, by NCCL's numbers in these files.
const (
	RingID ID = iota
	TreeID
	CollnetChainID
	NVLSID
	CollnetDirectID
	mostID = CollnetDirectID
)

// Pattern is the shape of a search's channels, by NCCL's numbers.
type Pattern int

// The patterns.
const (
	BalancedTree  Pattern = 1
	SplitTree     Pattern = 2
	Tree          Pattern = 3
	Ring          Pattern = 4
	NVLS          Pattern = 5
	CollnetDirect Pattern = 6
)

// ReadSearches reads a graph file and says what is wrong with it. A search or channel that cannot be is left out. With a graph of the
// machine the channels are compared with what is there.
func ReadSearches(in io.Reader, g *topo.Graph) ([]Search, *topo.Report, error) {
	root, err := parse(in)
	if err != nil {
		return nil, nil, err
	}
	if root.name != "graphs" {
		return nil, nil, &Error{root.line, fmt.Sprintf("the root is <%s>, not <graphs>", shorten(root.name)),
			"give a file as NCCL writes it with NCCL_GRAPH_DUMP_FILE"}
	}
	r := &reader{report: &topo.Report{}, taken: map[string]bool{}}
	if version := r.text(root, "version"); version != "1" {
		r.fault(root, fmt.Sprintf("<graphs> has version %q; it is read as version 1", shorten(version)), "write version=\"1\"")
	}
	var all []Search
	seen := map[ID]int{}
	for _, e := range root.children {
		s, ok := r.search(e, g)
		if before, again := seen[s.ID]; ok && again {
			r.fault(e, fmt.Sprintf("id %d is there again (first in line %d); this one is ignored", s.ID, before), "keep one <graph> of each id")
			continue
		}
		if ok {
			seen[s.ID] = e.line
			all = append(all, s)
		}
	}
	r.report.Sort()
	return all, r.report, nil
}

func (r *reader) search(e *element, g *topo.Graph) (s Search, ok bool) {
	if e.name != "graph" {
		r.fault(e, fmt.Sprintf("<%s> in <graphs> is ignored", shorten(e.name)), "it holds <graph> elements only")
		return s, false
	}
	channels := r.integer(e, "nchannels", bounds{0, 1024, len(e.children)})
	s = Search{Line: e.line, ID: ID(r.integer(e, "id", bounds{0, int(mostID), -1})),
		Pattern:  Pattern(r.integer(e, "pattern", bounds{int(BalancedTree), int(CollnetDirect), 0})),
		CrossNIC: r.integer(e, "crossnic", bounds{0, 2, 0}), Intra: r.number(e, "speedintra"), Inter: r.number(e, "speedinter"),
		LatencyInter: r.number(e, "latencyinter"), TypeIntra: r.pathType(e, "typeintra"), TypeInter: r.pathType(e, "typeinter"),
		Same: r.flag(e, "samechannels", false)}
	clear(r.taken)
	if s.ID < 0 || s.Pattern == 0 {
		r.fault(e, "a <graph> without a known id or pattern is ignored", "write both, as NCCL does")
		return s, false
	}
	for _, c := range e.children {
		if ch, ok := r.channel(c, g); ok {
			s.Channels = append(s.Channels, ch)
		}
	}
	if len(e.children) != channels {
		r.fault(e, fmt.Sprintf("nchannels is %d, but there are %d; those that are there count", channels, len(e.children)),
			"make the number that of the channels")
	}
	return s, true
}

func (r *reader) pathType(e *element, name string) path.Type {
	text := r.text(e, name)
	for t := path.LOC; t <= path.DIS; t++ {
		if t.String() == text {
			return t
		}
	}
	r.fault(e, fmt.Sprintf("%s is %q, which is no type of a path; SYS is taken", name, shorten(text)),
		"write one of LOC, NVL, PIX, PXB, PHB, SYS")
	return path.SYS
}

// channel reads a channel: perhaps a port, GPUs, perhaps a port.
func (r *reader) channel(e *element, g *topo.Graph) (c Channel, ok bool) {
	c = Channel{Line: e.line, In: -1, Out: -1, Weight: r.number(e, "weight")}
	clear(r.taken)
	if e.name != "channel" {
		r.fault(e, fmt.Sprintf("<%s> in <graph> is ignored", shorten(e.name)), "it holds <channel> elements only")
		return c, false
	}
	for k, end := range e.children {
		dev := r.integer(end, "dev", bounds{0, 1 << 20, -1})
		clear(r.taken)
		switch {
		case end.name == "gpu" && dev >= 0:
			c.GPUs = append(c.GPUs, dev)
		case end.name == "net" && dev >= 0 && k == 0:
			c.In = dev
		case end.name == "net" && dev >= 0 && k == len(e.children)-1:
			c.Out = dev
		default:
			r.fault(end, fmt.Sprintf("<%s> at place %d of a channel; the channel is ignored", shorten(end.name), k),
				"a channel is a net, GPUs and a net, or GPUs only, each with its dev")
			return c, false
		}
	}
	return c, r.fits(e, &c, g)
}
