package main

import (
	"fmt"
	"os"

	"hccl.dev/hccl/graph/draw"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/topo"
)

// drawMachine writes a picture of the machine with the rings that a search finds for so many hosts of its kind.
func drawMachine(file string, m *topo.Machine, hosts int) error {
	g := topo.Build(m)
	_, rings, err := ringsFor(g, hosts)
	if err != nil {
		return err
	}
	var channels []draw.Channel
	for _, r := range rings.Rings {
		channels = append(channels, draw.Channel{Weight: r.Weight, Stops: stops(g, r)})
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	if err := draw.SVG(out, g, channels); err != nil {
		_ = out.Close()
		return fmt.Errorf("--svg: %w", err)
	}
	return out.Close()
}

// stops are the nodes that a ring passes on one host.
func stops(g *topo.Graph, r pack.Ring) (nodes []int) {
	for _, s := range r.Segments {
		if s.In >= 0 {
			nodes = append(nodes, g.Ports[s.In])
		}
		for _, gpu := range s.GPUs {
			nodes = append(nodes, g.GPUs[gpu])
		}
		if s.Out >= 0 {
			nodes = append(nodes, g.Ports[s.Out])
		} else {
			nodes = append(nodes, nodes[0]) // it closes on the host
		}
	}
	return nodes
}
