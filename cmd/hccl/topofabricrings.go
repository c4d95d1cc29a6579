package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"hccl.dev/hccl/graph/fabric"
)

// ringsReport is what --ring tells. Worst is in flows' units over GB/s: seconds, where each flow is 1 GB.
type ringsReport struct {
	Flows     int     `json:"flows"`
	Worst     float64 `json:"worst"`
	Link      string  `json:"link"`
	Single    float64 `json:"single_worst"`
	SingleOn  string  `json:"single_link"`
	Gain      float64 `json:"gain"`
	Reachable float64 `json:"gbps_each"` // what each flow gets when all want the same
}

func (o *fabricFlags) showRings(out io.Writer, net *fabric.Fabric, router *fabric.Router) error {
	var flows []fabric.Flow
	for _, text := range o.rings {
		ring, err := hostsOf(net, text)
		if err != nil {
			return err
		}
		flows = append(flows, fabric.RingFlows(ring)...)
	}
	if len(flows) == 0 {
		return errors.New("a ring of one host has nothing to send: name two or more")
	}
	single, err := router.Single(flows)
	if err != nil {
		return err
	}
	spread, err := router.Spread(flows, o.parts)
	if err != nil {
		return err
	}
	r := ringsReport{len(flows), spread.Worst, linkName(net, spread.Link), single.Worst, linkName(net, single.Link),
		single.Worst / spread.Worst, 1 / spread.Worst}
	if o.json {
		return writeIndented(out, r)
	}
	fmt.Fprintf(out, "%d flows at the same time, %.4g GB/s each: the most loaded link is %s\n", r.Flows, r.Reachable, r.Link)
	fmt.Fprintf(out, "each on its one shortest way: %.4g GB/s (%s); spread over ways, %.2f times that\n", 1/r.Single, r.SingleOn, r.Gain)
	return nil
}

func hostsOf(net *fabric.Fabric, text string) (ring []int, err error) {
	if text == "all" {
		return net.Hosts(), nil
	}
	for name := range strings.SplitSeq(text, ",") {
		h, err := hostOf(net, name)
		if err != nil {
			return nil, err
		}
		ring = append(ring, h)
	}
	return ring, nil
}

func linkName(net *fabric.Fabric, l int) string {
	if l < 0 {
		return "none"
	}
	return net.Nodes[net.Links[l].From].Name + " > " + net.Nodes[net.Links[l].To].Name
}
