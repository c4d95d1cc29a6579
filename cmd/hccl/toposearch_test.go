package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// searched is what the tool says about copies of a machine.
func searched(t *testing.T, machine string, args ...string) (r searchResult, text string) {
	t.Helper()
	text, complaint, status := hccl(t, append([]string{"topo", "search", machines + machine + ".xml", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &r); err != nil || status != 0 || complaint != "" {
		t.Fatalf("%s: status %d, %v, %s", machine, status, err, complaint)
	}
	return r, text
}

// What is known of these machines: rings and bounds as NCCL's constants give them.
func TestTopoSearch(t *testing.T) {
	for _, c := range []struct {
		machine          string
		hosts            int
		ring, any, share float64 // share of the bound that an all-gather reaches
	}{
		{"amd-nvlink-pairs", 1, 24, 36, 0.99},
		{"h100-nvswitch-8nic", 1, 370.8, 418.8, 0.99},
		{"h100-nvswitch-8nic", 2, 384, 418.8, 0.99},
		{"v100-cube-mesh", 1, 120, 132, 0.99},
		{"gb10", 1, 0, 0, 0},
	} {
		r, _ := searched(t, c.machine, "--hosts", strconv.Itoa(c.hosts))
		if r.Hosts != c.hosts || r.File != c.machine+".xml" || r.Ms < 0 || len(r.Rings) == 0 && r.Ranks > 1 {
			t.Errorf("%s: %+v", c.machine, r.searchSummary)
		}
		for what, pair := range map[string][2]float64{"rings": {r.Ring.BW, c.ring}, "bound for rings": {r.Bound.RingPacking, c.ring},
			"bound": {r.Bound.AnySchedule, c.any}} {
			if math.Abs(pair[0]-pair[1]) > 0.01*pair[1] {
				t.Errorf("%s on %d hosts: %s %g, want %g", c.machine, c.hosts, what, pair[0], pair[1])
			}
		}
		for what, bw := range map[string]float64{"all-gather": r.AllGather.BW, "reduce-scatter": r.ReduceScatter.BW,
			"all-reduce": r.AllReduce.BW} {
			if bw < c.share*c.any || bw > c.any*1.0001 {
				t.Errorf("%s on %d hosts: %s of %g, bound %g", c.machine, c.hosts, what, bw, c.any)
			}
		}
	}
}

// Every tree that is printed reaches every GPU, by links that are in the file, and no link carries more than it holds.
func TestTopoSearchPrintsTreesThatHold(t *testing.T) {
	for _, machine := range []string{"amd-nvlink-pairs", "h100-3nic", "v100-cube-mesh", "gh200-four-modules", "b200-vm-unequal-nics"} {
		host, err := readHost(machines+machine+".xml", 2)
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]float64{}
		for _, l := range host.Links {
			name := host.Names[l.From] + ">" + host.Names[l.To]
			held[name] = max(held[name], l.Cap)
		}
		r, _ := searched(t, machine, "--hosts", "2")
		for what, plan := range map[string]treePlan{"all-gather": r.Plans.AllGather, "reduce-scatter": r.Plans.ReduceScatter} {
			load := map[string]float64{}
			put := func(at string, names []string, w float64) {
				for k := 1; k < len(names); k++ {
					link := names[k-1] + ">" + names[k]
					if held[link] == 0 {
						t.Fatalf("%s: no link %s", machine, link)
					}
					load[at+link] += w
				}
			}
			if plan.Trees == nil {
				continue
			}
			sent := map[string]float64{}
			for _, tree := range *plan.Trees {
				sent[tree.Root] += tree.Weight
				reached := map[string]int{tree.Root: 1}
				for _, e := range tree.Edges {
					child := e.To
					if what == "reduce-scatter" {
						child = e.From
					}
					reached[child]++
					follow(host.Path, host.Ranks, host.Ports, e, func(at string, names []string) { put(at, names, tree.Weight) })
				}
				for _, times := range reached {
					if times != 1 || len(reached) != r.Ranks {
						t.Fatalf("%s: %s tree of %s reaches %v", machine, what, tree.Root, reached)
					}
				}
			}
			for link, w := range load {
				if _, name, _ := strings.Cut(link, "/"); w > held[name]*1.0001 {
					t.Errorf("%s: %s puts %g on %s, which holds %g", machine, what, w, link, held[name])
				}
			}
			for root, w := range sent {
				if want := r.AllGather.BW / float64(r.Ranks-1); math.Abs(w-want) > 0.001*want {
					t.Errorf("%s: %s sends %g, want %g", machine, root, w, want)
				}
			}
		}
	}
}

// follow calls put for each host on an edge's way with the names of the nodes there.
func follow(fixed func(a, b int) []string, ranks, ports []int, e treeEdge, put func(at string, names []string)) {
	end := func(s string) (host string, device int) {
		host, gpu, _ := strings.Cut(s, "/gpu")
		n, _ := strconv.Atoi(gpu)
		return host + "/", slices.Index(ranks, n)
	}
	(&edgeWalk{end, fixed, len(ranks), ports, put}).walk(e)
}

type edgeWalk struct {
	end   func(string) (string, int)
	fixed func(a, b int) []string
	gpus  int
	ports []int
	put   func(at string, names []string)
}

func (w *edgeWalk) walk(e treeEdge) {
	from, a := w.end(e.From)
	to, b := w.end(e.To)
	switch {
	case e.Out != nil:
		w.put(from, w.fixed(a, w.gpus+slices.Index(w.ports, *e.Out)))
		w.put(to, w.fixed(w.gpus+slices.Index(w.ports, *e.In), b))
	case e.Route == nil:
		w.put(from, w.fixed(a, b))
	default:
		var names []string
		at := from
		for k, full := range e.Route {
			host, name, _ := strings.Cut(full, "/")
			if k > 0 && strings.HasPrefix(name, "net") && strings.HasPrefix(names[len(names)-1], "net") {
				w.put(at, names)
				names = nil
			}
			at, names = host+"/", append(names, name)
		}
		w.put(at, names)
	}
}

func TestTopoSearchIsTheSameEachTime(t *testing.T) {
	a, _ := searched(t, "h100-3nic", "--hosts", "2")
	b, _ := searched(t, "h100-3nic", "--hosts", "2")
	a.Ms, b.Ms = 0, 0
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) {
		t.Errorf("%s\nthen\n%s", x, y)
	}
}

func TestTopoSearchOf4096Ranks(t *testing.T) {
	r, text := searched(t, "h100-nvswitch-8nic", "--hosts", "512", "--summary")
	if r.Ranks != 4096 || r.Channels == 0 || strings.Contains(text, "rings\"") {
		t.Errorf("%s", text)
	}
	_, complaint, status := hccl(t, "topo", "search", machines+"h100-nvswitch-8nic.xml", "--hosts", "512", "--json")
	if status != 1 || !strings.Contains(complaint, "add --summary, or take at most 128 hosts") {
		t.Errorf("status %d, %s", status, complaint)
	}
}

func TestTopoSearchAndBoundAsText(t *testing.T) {
	out, _, status := hccl(t, "topo", "search", machines+"amd-nvlink-pairs.xml")
	for _, want := range []string{"amd-nvlink-pairs.xml, 1 host, 4 ranks, 2 channels", "all-gather", "limited by", "ring of 12 GB/s: "} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, no %q in %s", status, want, out)
		}
	}
	out, _, status = hccl(t, "topo", "bound", machines+"amd-nvlink-pairs.xml")
	if status != 0 || !strings.Contains(out, "36 GB/s") || !strings.Contains(out, "2 GPUs -> 24 GB/s") {
		t.Errorf("status %d, %s", status, out)
	}
	out, _, status = hccl(t, "topo", "bound", machines+"amd-nvlink-pairs.xml", "--hosts", "2", "--json")
	var b bounds
	if err := json.Unmarshal([]byte(out), &b); err != nil || status != 0 || b.AnySchedule == 0 || b.RingPacking > b.AnySchedule {
		t.Errorf("status %d, %v, %s", status, err, out)
	}
}

func TestTopoSearchSaysWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"--hosts is 0":           {"topo", "search", machines + "gb10.xml", "--hosts", "0"},
		"no such file":           {"topo", "bound", filepath.Join(t.TempDir(), "none.xml")},
		"name one topology file": {"topo", "search"},
	} {
		if _, text, status := hccl(t, args...); status != 1 || !strings.Contains(text, want) {
			t.Errorf("%v: status %d, %s, want %q", args, status, text, want)
		}
	}
	if _, err := readHost("toposearch_test.go", 1); err == nil {
		t.Error("a Go file is no topology")
	}
}
