package pack

import (
	"slices"

	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// Host is a machine as a Network, with the names of its nodes.
type Host struct {
	Network
	Names []string // of nodes
	Ranks []int    // number of each GPU in the source
	Ports []int    // and of each port

	shared []bool          // nodes that are devices of several GPUs; they have the name of the first of these
	double map[string]bool // names of several nodes: the source gives them one bus id
	paths  [][][]int       // links of the fixed path between devices, in order
}

// NewHost takes links, GPUs, ports and fixed paths over. A GPU and its device are one node, unless GPUs share the device.
func NewHost(t *path.Table) *Host {
	h := &Host{}
	node := h.nodes(t.Graph)
	for _, gpu := range t.Graph.GPUs {
		h.GPUs = append(h.GPUs, node[gpu])
		h.Ranks = append(h.Ranks, t.Graph.Nodes[gpu].GPU.Rank)
	}
	for _, port := range t.Graph.Ports {
		h.Nets = append(h.Nets, node[port])
		h.Ports = append(h.Ports, t.Graph.Nodes[port].Port.Number)
	}
	h.routes(t, h.links(t.Graph, node))
	for _, group := range t.Groups {
		h.Cut = h.Cut || group != t.Groups[0]
	}
	return h
}

// nodes numbers the nodes of the graph, and notes the names that more than one has.
func (h *Host) nodes(g *topo.Graph) []int {
	node, only := make([]int, len(g.Nodes)), map[int]int{} // the one GPU on a device; -1 if several share it
	for _, gpu := range g.GPUs {
		device := g.DeviceOf(gpu)
		if _, shared := only[device]; shared {
			gpu = -1
		}
		only[device] = gpu
	}
	h.double = map[string]bool{}
	seen := map[string]bool{}
	for k := range g.Nodes {
		gpu, device := only[k]
		shared := device && gpu < 0
		if device && !shared {
			continue // its GPU stands for it
		}
		name := g.Nodes[k].Name
		if !shared {
			h.double[name], seen[name] = h.double[name] || seen[name], true
		}
		h.shared = append(h.shared, shared)
		node[k] = h.Nodes
		h.Names = append(h.Names, name)
		h.Nodes++
	}
	for device, gpu := range only {
		if gpu >= 0 {
			node[device] = node[gpu]
		}
	}
	return node
}

// What a link of the graph is where it is no link of the network.
const (
	within = -1 // it joins a GPU to its device
	empty  = -2 // it carries nothing
)

func (h *Host) links(g *topo.Graph, node []int) []int {
	link := make([]int, len(g.Links))
	for k, l := range g.Links {
		switch from, to := node[l.From], node[l.To]; {
		case from == to:
			link[k] = within
		case l.Bandwidth <= 0:
			link[k] = empty
		default:
			link[k] = len(h.Links)
			h.Links = append(h.Links, Link{from, to, min(l.Bandwidth, mostCap)})
		}
	}
	return link
}

func (h *Host) routes(t *path.Table, link []int) {
	ends := append(append([]int(nil), t.Graph.GPUs...), t.Graph.Ports...)
	gpus := len(t.Graph.GPUs)
	h.Routes, h.paths = make([][][]Use, len(ends)), make([][][]int, len(ends))
	for a, from := range ends {
		h.Routes[a], h.paths[a] = make([][]Use, len(ends)), make([][]int, len(ends))
		for b, to := range ends {
			if a == b || a >= gpus && b >= gpus || t.Between(from, to).Type == path.DIS {
				continue
			}
			h.Routes[a][b] = route(t.Loads(from, to), link)
			for _, l := range t.Between(from, to).Links {
				if link[l] >= 0 {
					h.paths[a][b] = append(h.paths[a][b], link[l])
				}
			}
		}
	}
}

// route is a path in links of the network; nil if it has a link that carries nothing.
func route(loads []path.Load, link []int) []Use {
	uses := make([]Use, 0, len(loads))
	for _, l := range loads {
		switch {
		case l.Link < 0: // back over a link that is there in one direction only
		case link[l.Link] == empty:
			return nil
		case link[l.Link] != within:
			uses = append(uses, Use{link[l.Link], l.Factor})
		}
	}
	return uses
}

// Path is the names of the nodes on the fixed path between two devices (GPUs, then ports).
func (h *Host) Path(from, to int) []string {
	start := h.device(from)
	return h.Route(start, h.paths[from][to])
}

func (h *Host) device(k int) int {
	if k < len(h.GPUs) {
		return h.GPUs[k]
	}
	return h.Nets[k-len(h.GPUs)]
}

// Double tells whether several nodes have the name, so that nobody can tell which is meant.
func (h *Host) Double(name string) bool { return h.double[name] }

// Route is the names of the nodes on a walk over links, which begins at a node. A GPU and its device are one name.
func (h *Host) Route(start int, links []int) []string {
	nodes := []int{start}
	for _, l := range links {
		nodes = append(nodes, h.Links[l].To)
	}
	var names []string
	for k, n := range nodes {
		if h.shared[n] && (k == 1 && h.gpu(nodes[0]) || k == len(nodes)-2 && h.gpu(nodes[k+1])) {
			continue
		}
		names = append(names, h.Names[n])
	}
	return names
}

func (h *Host) gpu(node int) bool { return slices.Contains(h.GPUs, node) }
