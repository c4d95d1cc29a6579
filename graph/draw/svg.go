package draw

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

// Channel is an order of GPUs, perhaps between ports: nodes of the graph.
type Channel struct {
	Weight float64 // GB/s
	Stops  []int
}

const (
	bowDepth  = 2.4 // an arc hangs as deep as this times the root of its width: all stay apart, and none leaves the page
	bowUp     = 18  // arcs between NUMA nodes
	legendRow = 18
)

type canvas struct {
	*page
	out    *bufio.Writer
	bottom float64
}

// SVG writes the picture of a host and its channels.
func SVG(out io.Writer, g *topo.Graph, channels []Channel) error {
	c := &canvas{page: lay(g), out: bufio.NewWriter(out)}
	under := c.portsEnd + gapY/2
	for _, n := range c.order {
		if g.Nodes[n].Kind == topo.NVSwitchNode {
			under = c.boxes[n].bottom() + gapY/4
		}
	}
	width := max(c.right, 480)
	c.bottom = under + bow(width)
	height := c.bottom + float64(len(channels))*legendRow + margin
	c.print(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", width, height)
	c.print(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	c.links()
	for _, n := range c.order {
		c.node(c.boxes[n])
	}
	c.channels(channels, under)
	c.print("</svg>\n")
	return c.out.Flush() // a writer keeps its first error
}

func (c *canvas) print(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

var fills = [...]string{topo.GPUNode: "#cfe8cf", topo.DeviceNode: "#cfe8cf", topo.SwitchNode: "#e4e4e4", topo.NVSwitchNode: "#b9dcb9",
	topo.CPUNode: "#d5dff0", topo.NICNode: "#f3e3c3", topo.PortNode: "#fbf3e0"}

func (c *canvas) node(b box) {
	n := &c.g.Nodes[b.node]
	head, tail := n.Name, ""
	switch n.Kind {
	case topo.CPUNode:
		tail = strings.TrimSpace(n.CPU.Arch + " " + n.CPU.Vendor)
	case topo.DeviceNode:
		tail = n.Device.BusID
	case topo.SwitchNode:
		head, tail = "switch", n.Device.BusID
	case topo.NICNode:
		head, tail = "NIC", n.Device.BusID
	case topo.PortNode:
		head = fmt.Sprintf("%s  %.4g GB/s", n.Name, n.Port.Bandwidth())
	case topo.NVSwitchNode:
		head = "NVSwitch"
	}
	c.print(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3" fill="%s" stroke="#555"/>`+"\n", b.x, b.y, b.width, b.height,
		fills[n.Kind])
	y := b.y + b.height/2 + 4
	if tail != "" {
		c.text(b.middle(), y+6, tail, "#555")
		y -= 7
	}
	c.text(b.middle(), y, head, "black")
}

func (c *canvas) text(x, y float64, text, colour string) {
	c.print(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%s</text>`+"\n", x, y, colour, html.EscapeString(text))
}

// links draws each pair of directions once: the tree and the bus as lines, NVLinks between GPUs as arcs.
func (c *canvas) links() {
	for k := range c.g.Links {
		l := &c.g.Links[k]
		from, to, ok := c.ends(l)
		if !ok || l.Reverse >= 0 && l.Reverse < k || l.Type == topo.NET || l.Type == topo.LOC {
			continue
		}
		title := fmt.Sprintf("%s - %s: %s %.4g GB/s", c.g.Nodes[l.From].Name, c.g.Nodes[l.To].Name, l.Type, l.Bandwidth)
		switch {
		case l.Type == topo.SYS:
			c.curve(from.middle(), from.y, to.middle(), to.y, -bowUp, "#7a8fb8", 1, title)
		case l.Type == topo.NVL && from.y == to.y:
			c.curve(from.middle(), from.bottom(), to.middle(), to.bottom(), bow(from.middle()-to.middle()), "#8cbf8c", 1, title)
		case from.y > to.y:
			c.line(from, to, title)
		default:
			c.line(to, from, title)
		}
	}
}

func (c *canvas) ends(l *topo.Link) (from, to box, ok bool) {
	from, a := c.boxes[l.From]
	to, b := c.boxes[l.To]
	return from, to, a && b
}

// line goes straight up from a lower box to the bottom of an upper one, at the middle of the narrower.
func (c *canvas) line(lower, upper box, title string) {
	x := lower.middle()
	if upper.width < lower.width {
		x = upper.middle()
	}
	c.print(`<path d="M%.1f %.1fV%.1f" stroke="#555"><title>%s</title></path>`+"\n", x, lower.y, upper.bottom(), html.EscapeString(title))
}

func bow(distance float64) float64 { return bowDepth * math.Sqrt(math.Abs(distance)) }

// curve hangs (or stands, if its depth is negative) between two points. Its control points are 4/3 as far off as it reaches.
func (c *canvas) curve(x1, y1, x2, y2, depth float64, colour string, width float64, title string) {
	reach := depth * 4 / 3
	c.print(`<path d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f" fill="none" stroke="%s" stroke-width="%.1f"><title>%s</title></path>`+"\n",
		x1, y1, x1, y1+reach, x2, y2+reach, x2, y2, colour, width, html.EscapeString(title))
}
