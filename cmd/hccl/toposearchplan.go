package main

import (
	"strconv"

	"hccl.dev/hccl/graph/pack"
)

// The JSON of hccl topo search. Bandwidths are bus bandwidths in GB/s.
type (
	bandwidth struct {
		BW float64 `json:"bw"`
	}
	bounds struct {
		AnySchedule float64 `json:"any_schedule"`
		RingPacking float64 `json:"ring_packing"` // rings that leave a host by the port that they came in by
		RingCross   float64 `json:"ring_packing_crossnic"`
		Cut         string  `json:"limiting_cut"`
	}
	searchSummary struct {
		File          string    `json:"file"`
		Hosts         int       `json:"hosts"`
		Ranks         int       `json:"ranks"`
		Channels      int       `json:"channels"`
		Ms            float64   `json:"ms"`
		Ring          bandwidth `json:"ring"`
		Tree          bandwidth `json:"tree"`
		AllGather     bandwidth `json:"allgather"`
		ReduceScatter bandwidth `json:"reducescatter"`
		AllReduce     bandwidth `json:"allreduce"`
		Bound         bounds    `json:"bound"`
	}
	searchResult struct {
		searchSummary
		Rings []ringPlan         `json:"rings"`
		Loads map[string]float64 `json:"loads"`
		Plans struct {
			AllGather     treePlan `json:"allgather"`
			ReduceScatter treePlan `json:"reducescatter"`
			AllReduce     treePlan `json:"allreduce"`
		} `json:"plans"`
	}
	ringPlan struct {
		Weight   float64       `json:"weight"`
		Segments []ringSegment `json:"segments"`
	}
	ringSegment struct {
		Host int   `json:"host"`
		GPUs []int `json:"gpus"`
		In   *int  `json:"in,omitempty"`
		Out  *int  `json:"out,omitempty"`
	}
	treePlan struct {
		From  string  `json:"from,omitempty"` // what the plan is made of instead of trees
		Trees *[]tree `json:"trees,omitempty"`
	}
	tree struct {
		Root   string     `json:"root"`
		Weight float64    `json:"weight"`
		Edges  []treeEdge `json:"edges"`
	}
	treeEdge struct {
		From  string   `json:"from"`
		To    string   `json:"to"`
		Route []string `json:"route,omitempty"` // none: the fixed path, or those to port Out and from port In
		Out   *int     `json:"out,omitempty"`
		In    *int     `json:"in,omitempty"`
	}
)

func boundOf(l pack.Limit, r pack.RingPacking) bounds {
	return bounds{short(l.Bus), short(r.Bound), short(r.Cross), l.String()}
}

func searchOf(s searchSummary, h *pack.Host, r *pack.Result) searchResult {
	all := searchResult{searchSummary: s, Rings: ringPlans(h, r), Loads: map[string]float64{}}
	for k, load := range r.Rings.Loads {
		if load > 0 {
			for host := range r.Hosts {
				l := h.Links[k]
				all.Loads[at(host, h.Names[l.From])+">"+at(host, h.Names[l.To])] += load
			}
		}
	}
	for name, load := range all.Loads {
		all.Loads[name] = short(load)
	}
	none := &[]tree{}
	plan := func(bw float64, rings bool, trees func() []tree) treePlan {
		switch {
		case bw == 0:
			return treePlan{Trees: none} // a single rank, or ranks that nothing joins
		case rings:
			return treePlan{From: "rings"}
		}
		found := trees()
		return treePlan{Trees: &found}
	}
	bw, rings := r.AllGather()
	all.Plans.AllGather = plan(bw, rings, func() []tree { return awayFrom(h).all(r.Hosts, &r.Gather) })
	bw, rings = r.ReduceScatter()
	all.Plans.ReduceScatter = plan(bw, rings, func() []tree { return towards(h, r.Turned).all(r.Hosts, &r.Scatter) })
	if bw, rings = r.AllReduce(); bw == 0 || rings {
		all.Plans.AllReduce = plan(bw, rings, nil)
	} else {
		all.Plans.AllReduce.From = "reducescatter+allgather"
	}
	return all
}

func ringPlans(h *pack.Host, r *pack.Result) []ringPlan {
	plans := []ringPlan{}
	for _, ring := range r.Rings.Rings {
		plan := ringPlan{Weight: short(ring.Weight)}
		for host := range r.Hosts {
			for _, s := range ring.Segments {
				to := ringSegment{Host: host}
				for _, g := range s.GPUs {
					to.GPUs = append(to.GPUs, h.Ranks[g])
				}
				if s.In >= 0 {
					to.In, to.Out = &h.Ports[s.In], &h.Ports[s.Out]
				}
				plan.Segments = append(plan.Segments, to)
			}
		}
		plans = append(plans, plan)
	}
	return plans
}

func at(host int, name string) string { return strconv.Itoa(host) + "/" + name }

// short is a weight to six digits.
func short(w float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(w, 'g', 6, 64), 64)
	return v
}
