package fabric

import "fmt"

// maker adds nodes and links whose names and numbers cannot be wrong.
type maker struct{ *Fabric }

func (m maker) add(kind Kind, group int, format string, args ...any) int {
	n, err := m.Add(fmt.Sprintf(format, args...), kind, group)
	if err != nil {
		panic(err) // a generator that makes a name twice
	}
	return n
}

func (m maker) join(a, b int, gbps float64) { m.joinFar(a, b, gbps, 1) }

func (m maker) joinFar(a, b int, gbps, length float64) {
	if err := m.ConnectFar(a, b, gbps, length); err != nil {
		panic(err)
	}
}

// FatTree is the k-ary fat tree of three levels (M. Al-Fares et al., "A scalable, commodity data center network architecture", 2008):
// k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts, all links alike.
func FatTree(k int, gbps float64) (*Fabric, error) {
	if k < 2 || k%2 != 0 || k > 64 {
		return nil, fmt.Errorf("a fat tree of %d ports a switch: wanted is an even number from 2 to 64", k)
	}
	if !(gbps > 0) {
		return nil, fmt.Errorf("links of %v GB/s", gbps)
	}
	m, half := maker{New()}, k/2
	core := make([]int, half*half)
	for c := range core {
		core[c] = m.add(Switch, -1, "core%d", c)
	}
	for pod := range k {
		agg := make([]int, half)
		for a := range agg {
			agg[a] = m.add(Switch, pod, "agg%d.%d", pod, a)
			for c := range half {
				m.join(agg[a], core[a*half+c], gbps)
			}
		}
		for e := range half {
			edge := m.add(Switch, pod, "edge%d.%d", pod, e)
			for _, a := range agg {
				m.join(edge, a, gbps)
			}
			for h := range half {
				m.join(m.add(Host, pod, "host%d", (pod*half+e)*half+h), edge, gbps)
			}
		}
	}
	return m.Fabric, nil
}

// DragonflySize is the shape of a dragonfly (J. Kim et al., "Technology-driven, highly-scalable dragonfly topology", 2008).
type DragonflySize struct {
	Routers int // a: of a group, all joined to each other
	Hosts   int // p: of a router
	Global  int // h: links of a router to other groups
	Groups  int // g: 2 to Routers*Global+1; 0: as many as there can be
}

// Dragonfly is a dragonfly in which every two groups are joined at least once; where there are fewer groups than links, the links go
// around again. Global link j of a group (of its router j/h) goes to the group j+1 further.
func Dragonfly(s DragonflySize, gbps float64) (*Fabric, error) {
	most := s.Routers*s.Global + 1
	if s.Groups == 0 {
		s.Groups = most
	}
	if s.Routers < 1 || s.Hosts < 1 || s.Global < 1 || s.Groups < 2 || s.Groups > most || most > 4096 || !(gbps > 0) {
		return nil, fmt.Errorf("a dragonfly of %d groups of %d routers, each with %d hosts and %d global links of %v GB/s: wanted are 2 to %d "+
			"groups", s.Groups, s.Routers, s.Hosts, s.Global, gbps, most)
	}
	m := maker{New()}
	routers := make([][]int, s.Groups)
	for g := range routers {
		for r := range s.Routers {
			router := m.add(Switch, g, "router%d.%d", g, r)
			for _, other := range routers[g] {
				m.join(router, other, gbps)
			}
			routers[g] = append(routers[g], router)
		}
		for r, router := range routers[g] {
			for h := range s.Hosts {
				m.join(m.add(Host, g, "host%d", (g*s.Routers+r)*s.Hosts+h), router, gbps)
			}
		}
	}
	s.joinGroups(m, routers, gbps)
	return m.Fabric, nil
}

// globalLength has a way with one cable between groups count less than any with two: minimal routing of a dragonfly takes one.
const globalLength = 3

// joinGroups makes the cables between groups. Link j of group g leads d = j+1 (modulo Groups-1) further, where it is the one that
// leads Groups-d further: each cable is seen from both ends and made once.
func (s DragonflySize) joinGroups(m maker, routers [][]int, gbps float64) {
	n := s.Groups - 1
	for j := range s.Routers * s.Global {
		d, round := j%n+1, j/n
		back := round*n + s.Groups - d - 1
		if back >= s.Routers*s.Global {
			continue // the last round is not full: this end stays without a cable
		}
		for g := range routers {
			to := (g + d) % s.Groups
			if g < to {
				m.joinFar(routers[g][j/s.Global], routers[to][back/s.Global], gbps, globalLength)
			}
		}
	}
}

// RailSize is the shape of a rail-optimised network: NIC r of every host hangs on a leaf switch of rail r.
type RailSize struct {
	Hosts, Rails int
	PerLeaf      int // hosts below one leaf switch
	Spines       int // each joined to every leaf
}

// RailOptimised makes hosts with a link of gbps per rail; a leaf's uplinks together carry what its hosts send.
func RailOptimised(s RailSize, gbps float64) (*Fabric, error) {
	if s.Hosts < 1 || s.Rails < 1 || s.PerLeaf < 1 || s.Spines < 1 || s.Hosts > 1<<16 || s.Rails > 64 || s.Spines > 1024 || !(gbps > 0) {
		return nil, fmt.Errorf("a rail-optimised network of %d hosts, %d rails, %d hosts a leaf, %d spines of %v GB/s: wanted are numbers "+
			"above 0", s.Hosts, s.Rails, s.PerLeaf, s.Spines, gbps)
	}
	m := maker{New()}
	spines, hosts := make([]int, s.Spines), make([]int, s.Hosts)
	for i := range spines {
		spines[i] = m.add(Switch, -1, "spine%d", i)
	}
	for h := range hosts {
		hosts[h] = m.add(Host, -1, "host%d", h)
	}
	for rail := range s.Rails {
		for first := 0; first < s.Hosts; first += s.PerLeaf {
			below := hosts[first:min(first+s.PerLeaf, s.Hosts)]
			leaf := m.add(Switch, rail, "leaf%d.%d", rail, first/s.PerLeaf)
			for _, h := range below {
				m.join(h, leaf, gbps)
			}
			for _, sp := range spines {
				m.join(leaf, sp, gbps*float64(len(below))/float64(s.Spines))
			}
		}
	}
	return m.Fabric, nil
}
