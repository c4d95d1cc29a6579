package draw

import (
	"fmt"
	"math"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

// turn is the angle between the colours of successive channels: the golden angle never comes near a colour that was there lately.
const turn = 137.508

// channels draws each channel as arcs from stop to stop, and a legend.
func (c *canvas) channels(all []Channel, under float64) {
	widest := 0.0
	for _, ch := range all {
		widest = max(widest, ch.Weight)
	}
	for k, ch := range all {
		colour := fmt.Sprintf("hsl(%.0f 70%% 45%%)", math.Mod(float64(k)*turn, 360))
		names := c.names(ch)
		title := fmt.Sprintf("channel %d, %.4g GB/s: %s", k, ch.Weight, strings.Join(names, " "))
		width := 1 + 3*ch.Weight/max(widest, 1e-9)
		for s := 1; s < len(ch.Stops); s++ {
			from, a := c.boxes[c.g.DeviceOf(ch.Stops[s-1])]
			to, b := c.boxes[c.g.DeviceOf(ch.Stops[s])]
			if a && b {
				shift := float64(k%9-4) * 3 // so that channels over one pair stay apart
				c.curve(from.middle()+shift, under, to.middle()+shift, under, bow(from.middle()-to.middle()), colour, width, title)
			}
		}
		y := c.bottom + float64(k+1)*legendRow
		c.print(`<path d="M%d %.1fh30" stroke="%s" stroke-width="%.1f"/>`+"\n", margin, y-4, colour, width)
		c.print(`<text x="%d" y="%.1f">%.4g GB/s: %s</text>`+"\n", margin+38, y, ch.Weight, strings.Join(names, " "))
	}
}

func (c *canvas) names(ch Channel) (names []string) {
	for _, n := range ch.Stops {
		name := c.g.Nodes[n].Name
		if c.g.Nodes[n].Kind == topo.GPUNode {
			name = strings.TrimPrefix(name, "gpu")
		}
		names = append(names, name)
	}
	return names
}
