package fabric

import (
	"fmt"
	"slices"
	"strings"
)

// Place is where a host hangs in the network.
type Place struct {
	Switch string // the nearest
	Group  int    // of that: a pod of a fat tree, a group of a dragonfly; -1: none
}

// PlaceOf reads where a host hangs from a fabric as ReadFile takes it, or from what lldpd says on that host, as ReadLLDP takes it.
func PlaceOf(text []byte, host string) (Place, error) {
	if neighbors, err := ReadLLDP(text); err == nil {
		if len(neighbors) == 0 {
			return Place{}, fmt.Errorf("no interface has a switch for a neighbour; let the switches send LLDP, or write a fabric")
		}
		return Place{neighbors[0].Switch, -1}, nil
	}
	f, err := ReadFile(text)
	if err != nil {
		return Place{}, err
	}
	short, _, _ := strings.Cut(host, ".")
	at := slices.IndexFunc(f.Hosts(), func(n int) bool { return f.Nodes[n].Name == host || f.Nodes[n].Name == short })
	if at < 0 {
		return Place{}, fmt.Errorf("there is no host %q in the fabric; name it as the command hostname does", host)
	}
	near := f.Near()[at]
	if near < 0 {
		return Place{}, fmt.Errorf("host %q hangs on no switch in the fabric; add its links", host)
	}
	return Place{f.Nodes[near].Name, f.Nodes[near].Group}, nil
}
