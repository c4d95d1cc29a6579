// Package affinity says on which processors a rank and the library's own threads are best: near the GPU that the rank computes on,
// and near the card that it sends through.
//
// It is pure: it is given the machine, what the rank uses, and where the process may run now, and returns sets and the reason. Whose
// threads go there and when is the caller's matter (core). A launcher's pinning is respected: the sets only narrow what it left,
// unless NCCL_IGNORE_CPU_AFFINITY says otherwise. As in NCCL that is about the place of a GPU: ranks on the host stay within their mask,
// but for processors that are named.
package affinity

import (
	"fmt"
	"strconv"
	"strings"

	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/cpuset"
)

// Rank is what is known of a rank and its process.
type Rank struct {
	GPU  int        // number of the GPU that it computes on; -1: it computes on the host, where its threads are
	Port string     // the port that it sends through, by its name or its interface's; "": none
	Mask cpuset.Set // where the process may run now

	Ignore bool       // NCCL_IGNORE_CPU_AFFINITY: the mask does not count, for ranks with a GPU and for Proxy
	Proxy  cpuset.Set // NCCL_PROXY_CPUSET: processors of the library's own threads; empty: not set
}

// Placement is the answer. An empty set means: stay where you are.
type Placement struct {
	Rank    cpuset.Set // for the threads that call and their memory
	Threads cpuset.Set // for the library's own threads
	Memory  int        // NUMA node for what is sent and received; -1: it does not matter, or is not known
	Why     string     // for people
}

// Place says where a rank and its library's threads belong.
func Place(m *topo.Machine, r Rank) Placement {
	p := Placement{Memory: -1}
	gpu, port := gpuNode(m, r.GPU), portNode(m, r.Port)
	if port != nil && several(m) {
		p.Memory = port.NUMA
	}
	var why []string
	if gpu != nil {
		var text string
		p.Rank, text = r.near(gpu, "GPU "+strconv.Itoa(r.GPU), several(m))
		why = append(why, "the rank "+text)
	}
	threads := "the library's threads "
	switch {
	case !r.Proxy.Empty():
		var text string
		p.Threads, text = r.within(r.Proxy, "NCCL_PROXY_CPUSET", r.Ignore)
		why = append(why, threads+text)
	case port != nil:
		var text string
		p.Threads, text = r.near(port, "port "+r.Port, several(m))
		why = append(why, threads+text)
	case gpu != nil:
		p.Threads = p.Rank
		why = append(why, threads+"as the rank")
	default:
		why = append(why, threads+"stay where they are: "+r.unknown(m))
	}
	p.Why = strings.Join(why, "; ")
	return p
}

// several reports whether the machine has more than one NUMA node with processors; else there is nothing to choose.
func several(m *topo.Machine) bool {
	n := 0
	for _, c := range m.CPUs {
		if c.Affinity != "" {
			n++
		}
	}
	return n > 1
}

// near are the processors of a NUMA node that may be used.
func (r *Rank) near(c *topo.CPU, what string, several bool) (cpuset.Set, string) {
	set, err := cpuset.ParseMask(c.Affinity)
	where := fmt.Sprintf("NUMA node %d of %s", c.NUMA, what)
	switch {
	case !several:
		return cpuset.Set{}, fmt.Sprintf("may use all processors (%s): there is one NUMA node", r.Mask)
	case err != nil || set.Empty() || c.NUMA < 0:
		return cpuset.Set{}, fmt.Sprintf("may use all processors (%s): those of %s are not known", r.Mask, where)
	}
	return r.within(set, where, r.Ignore && r.GPU >= 0)
}

// within is what of a set may be used, and how that is said.
func (r *Rank) within(set cpuset.Set, where string, ignore bool) (cpuset.Set, string) {
	if ignore {
		return set, fmt.Sprintf("on processors %s by %s, whatever the process was given (%s): NCCL_IGNORE_CPU_AFFINITY", set, where, r.Mask)
	}
	both := set.And(r.Mask)
	switch {
	case both.Empty():
		return cpuset.Set{}, fmt.Sprintf("stays on processors %s, which the process was given: none of them is among %s of %s", r.Mask, set,
			where)
	case both.Equal(r.Mask):
		return cpuset.Set{}, fmt.Sprintf("stays on processors %s, which the process was given: all are of %s", r.Mask, where)
	}
	return both, fmt.Sprintf("on processors %s of %s by %s", both, r.Mask, where)
}

func (r *Rank) unknown(m *topo.Machine) string {
	switch {
	case !several(m):
		return "there is one NUMA node"
	case r.Port != "":
		return "the place of port " + r.Port + " is not known"
	}
	return "the rank has neither GPU nor card"
}

func gpuNode(m *topo.Machine, number int) (node *topo.CPU) {
	m.Walk(func(c *topo.CPU, d *topo.Device) {
		for _, g := range d.GPUs {
			if g.Number == number && number >= 0 && node == nil {
				node = c
			}
		}
	})
	return node
}

// portNode is the NUMA node of a port that stands at a place on the bus; those that are nowhere are near nothing.
func portNode(m *topo.Machine, name string) (node *topo.CPU) {
	m.Walk(func(c *topo.CPU, d *topo.Device) {
		if d.NIC == nil || d.BusID == "" || name == "" {
			return
		}
		for _, p := range d.NIC.Ports {
			if node == nil && (p.Name == name || sysfs.InterfaceOf(p) == name) {
				node = c
			}
		}
	})
	return node
}

// Near says of each port whether it stands at the NUMA node that has all processors of mask. Nil: the machine has one node, the mask is
// of several, or no port is any nearer than the others.
func Near(m *topo.Machine, ports []string, mask cpuset.Set) (near []bool) {
	if !several(m) || mask.Empty() {
		return nil
	}
	count := 0
	for _, port := range ports {
		here := false
		if node := portNode(m, port); node != nil {
			set, err := cpuset.ParseMask(node.Affinity)
			here = err == nil && mask.And(set).Equal(mask)
		}
		if near = append(near, here); here {
			count++
		}
	}
	if count == 0 || count == len(ports) {
		return nil
	}
	return near
}
