// Package draw makes a picture of a host: NUMA nodes with the PCI tree below each, GPUs, NICs and ports, the NVLinks between GPUs,
// and the channels that a search laid over them. It writes SVG as text; it reads nothing and measures nothing. The tool calls it.
//
//	NUMA node ───────── NUMA node      one box above what hangs on it
//	  switch   switch     switch       a row for each level
//	 GPU NIC  GPU NIC    GPU NIC       all devices in one row
//	     port     port       port      ports below their card
//	 ══════════ NVSwitch ═════════     or NVLinks as arcs
//	 ╰──channel──╯ ╰─────╯             each in its colour, as wide as its share
package draw

import (
	"hccl.dev/hccl/graph/topo"
)

// Sizes in pixels.
const (
	boxWidth, boxHeight = 104, 40
	gapX, gapY          = 16, 44
	portHeight          = 18
	margin              = 24
)

// box is a node on the page.
type box struct {
	node          int
	x, y          float64 // upper left corner
	width, height float64
}

func (b box) middle() float64 { return b.x + b.width/2 }
func (b box) bottom() float64 { return b.y + b.height }

// page is all boxes, and what is below the row of devices.
type page struct {
	g        *topo.Graph
	boxes    map[int]box // by node
	order    []int       // of the nodes with boxes, as they were laid out
	right    float64     // where the next device goes
	row      float64     // top of the row of devices
	portsEnd float64     // bottom of the longest list of ports
}

// lay places every node of the graph.
func lay(g *topo.Graph) *page {
	p := &page{g: g, boxes: map[int]box{}, right: margin}
	deepest := 0
	for _, c := range g.CPUs {
		deepest = max(deepest, p.depth(c, -1))
	}
	p.row = margin + float64(deepest)*(boxHeight+gapY)
	p.portsEnd = p.row + boxHeight
	for _, c := range g.CPUs {
		p.tree(c, -1, 0)
		p.right += gapX
	}
	for n := range g.Nodes {
		if g.Nodes[n].Kind == topo.NVSwitchNode {
			p.put(box{n, margin, p.portsEnd + gapY/2, max(p.right-gapX*2-margin, boxWidth), boxHeight / 2})
		}
	}
	return p
}

func (p *page) put(b box) {
	p.boxes[b.node] = b
	p.order = append(p.order, b.node)
}

// below are the nodes that hang on one in the PCI tree.
func (p *page) below(node, parent int) (nodes []int) {
	for _, l := range p.g.Nodes[node].Out {
		if link := &p.g.Links[l]; link.Type == topo.PCI && link.To != parent {
			nodes = append(nodes, link.To)
		}
	}
	return nodes
}

// depth is how many levels of NUMA node and switches there are.
func (p *page) depth(node, parent int) int {
	if k := p.g.Nodes[node].Kind; k != topo.CPUNode && k != topo.SwitchNode {
		return 0
	}
	deepest := 0
	for _, n := range p.below(node, parent) {
		deepest = max(deepest, p.depth(n, node))
	}
	return deepest + 1
}

// tree places a node above all that hangs on it.
func (p *page) tree(node, parent, level int) {
	if k := p.g.Nodes[node].Kind; k != topo.CPUNode && k != topo.SwitchNode {
		p.device(node)
		return
	}
	left, before := p.right, len(p.order)
	p.order = append(p.order, node) // parents stand before children
	for _, n := range p.below(node, parent) {
		p.tree(n, node, level+1)
	}
	if len(p.order) == before+1 {
		p.right += boxWidth + gapX // nothing below
	}
	p.boxes[node] = box{node, left, margin + float64(level)*(boxHeight+gapY), p.right - gapX - left, boxHeight}
}

// device places a GPU or a card, and the card's ports below it.
func (p *page) device(node int) {
	p.put(box{node, p.right, p.row, boxWidth, boxHeight})
	y := p.row + boxHeight
	for _, l := range p.g.Nodes[node].Out {
		if link := &p.g.Links[l]; link.Type == topo.NET {
			p.put(box{link.To, p.right, y, boxWidth, portHeight})
			y += portHeight
		}
	}
	p.portsEnd = max(p.portsEnd, y)
	p.right += boxWidth + gapX
}
