package core

import (
	"cmp"
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/proto/wire"
)

// What ranks say of hosts that look different to them.

// tellHosts says which hosts' topologies differ. It is one rank's to say.
func tellHosts(l log.Logger, peers []wire.Peer) {
	var kinds []string
	hosts := map[string][]string{} // by topology: names, each with the first rank there
	seen := map[place]bool{}
	for r := range peers {
		p := &peers[r]
		if h := (place{p.BootID, p.NetNS}); p.Topology == "" || seen[h] {
			continue
		} else {
			seen[h] = true
		}
		if hosts[p.Topology] == nil {
			kinds = append(kinds, p.Topology)
		}
		hosts[p.Topology] = append(hosts[p.Topology], fmt.Sprintf("%s (rank %d)", cmp.Or(p.Host, "a host"), r))
	}
	if len(kinds) < 2 {
		return
	}
	var texts []string
	for _, k := range kinds {
		texts = append(texts, fmt.Sprintf("%s on %s", k, few(hosts[k])))
	}
	l.Info(log.Graph, "the hosts' topologies differ: %s; where they should be alike, compare what hccl topo shows on them",
		strings.Join(texts, ", "))
}

// filesApart names the hosts whose ranks have different NCCL_TOPO_FILEs: nobody means that. "" where there are none.
func filesApart(peers []wire.Peer) string {
	type look struct {
		described [32]byte
		file      string
	}
	at := places(peers)
	ranks := map[int]map[look][]int{} // by host and look
	looks := map[int][]look{}         // in the order of their first ranks
	var hosts []int
	for r := range peers {
		h, l := at[r].Host, look{peers[r].Described, peers[r].File}
		if l.described != ([32]byte{}) {
			l.file = "" // what stands in it tells more than its name
		}
		if ranks[h] == nil {
			ranks[h] = map[look][]int{}
			hosts = append(hosts, h)
		}
		if ranks[h][l] == nil {
			looks[h] = append(looks[h], l)
		}
		ranks[h][l] = append(ranks[h][l], r)
	}
	var texts []string
	for _, h := range hosts {
		if len(looks[h]) < 2 {
			continue
		}
		var each []string
		counts := -1 // the first rank whose file has GPUs
		for _, l := range looks[h] {
			first := ranks[h][l][0]
			name := "not set"
			if f := peers[first].File; f != "" {
				name = fmt.Sprintf("%q", f)
			}
			each = append(each, fmt.Sprintf("%s on %s", name, list(ranks[h][l])))
			if counts < 0 && l.described != ([32]byte{}) {
				counts = first
			}
		}
		text := "on " + cmp.Or(peers[ranks[h][looks[h][0]][0]].Host, "a host") + " it is " + strings.Join(each, ", ")
		if counts >= 0 {
			text += fmt.Sprintf("; rings go by rank %d's", counts)
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return ""
	}
	return "NCCL_TOPO_FILE, or what stands in it, differs among ranks of one host: " + few(texts) + "; set it alike on the ranks of a host"
}

// few is a list, cut where it is long.
func few(all []string) string {
	const most = 8
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// shorten cuts a text that goes to all ranks.
func shorten(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most-3] + "..."
	}
	return text
}
