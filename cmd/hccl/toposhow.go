package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// showMachine prints the tree of a machine, and how its GPUs and ports reach each other.
func showMachine(out io.Writer, m *topo.Machine) error {
	g := topo.Build(m)
	fmt.Fprintf(out, "%s, %s, %s\n\n", plural.Of(len(m.CPUs), "NUMA node"), plural.Of(len(g.GPUs), "GPU"),
		plural.Of(len(g.Ports), "network port"))
	for _, c := range m.CPUs {
		fmt.Fprintln(out, cpuLine(c))
		showBranches(out, "", branches(c.Devices))
	}
	if len(g.GPUs)+len(g.Ports) == 0 {
		_, err := fmt.Fprintln(out, "\nno GPU is used and no port: there are no paths to show")
		return err
	}
	return showMatrix(out, path.New(g))
}

func cpuLine(c *topo.CPU) string {
	number := fmt.Sprint(c.NUMA)
	if c.NUMA < 0 {
		number = "(no number)"
	}
	words := []string{"NUMA node " + number}
	for _, w := range []string{c.Arch, c.Vendor} {
		if w != "" {
			words = append(words, w)
		}
	}
	if c.Family != 0 {
		words = append(words, fmt.Sprintf("family %d model %d", c.Family, c.Model))
	}
	return strings.Join(words, "  ")
}

// branch is a line of the tree with what hangs on it.
type branch struct {
	text  string
	below []branch
}

func branches(devices []*topo.Device) (all []branch) {
	for _, d := range devices {
		all = append(all, branchOf(d))
	}
	return all
}

func branchOf(d *topo.Device) branch {
	if d.BusID == "" {
		return branch{"NIC on no bus", ports(d.NIC)}
	}
	b := branch{fmt.Sprintf("%s %s  %s", deviceWord(d), d.BusID, linkText(d)), nil}
	switch len(d.GPUs) {
	case 0:
	case 1:
		b.text, b.below = b.text+"  "+gpuText(d.GPUs[0]), gpuLinks(d.GPUs[0])
	default: // parts of one
		for _, g := range d.GPUs {
			b.below = append(b.below, branch{gpuText(g), gpuLinks(g)})
		}
	}
	if d.NIC != nil {
		b.below = append(b.below, ports(d.NIC)...)
	}
	b.below = append(b.below, branches(d.Below)...)
	return b
}

func deviceWord(d *topo.Device) string {
	switch {
	case d.NIC != nil:
		return "NIC"
	case len(d.GPUs) > 0:
		return "GPU"
	}
	return map[topo.Role]string{topo.RoleGPU: "GPU", topo.RoleNIC: "NIC", topo.RoleNVSwitch: "NVSwitch", topo.RoleCPU: "CPU"}[d.Class.Role()] +
		map[bool]string{true: "switch"}[d.Class.Role() == topo.RoleSwitch]
}

func linkText(d *topo.Device) string {
	speed, width := strings.TrimSuffix(d.Speed, " PCIe"), fmt.Sprintf("x%d", d.Width)
	if d.Speed == "" {
		speed = "speed not known"
	}
	if d.Width == 0 {
		width = "width not known"
	}
	return fmt.Sprintf("%s %s, %.4g GB/s", speed, width, d.Bandwidth())
}

func gpuText(g *topo.GPU) string {
	text := fmt.Sprintf("rank %d, device %d, sm %d", g.Rank, g.Number, g.SM)
	if g.Rank < 0 {
		text = fmt.Sprintf("no rank, device %d, sm %d", g.Number, g.SM)
	}
	if g.GDR {
		text += ", GPU-direct RDMA"
	}
	return text
}

func gpuLinks(g *topo.GPU) (all []branch) {
	for _, l := range g.NVLinks {
		to := map[topo.Role]string{topo.RoleGPU: "GPU " + l.Target, topo.RoleCPU: "the CPU"}[l.Class.Role()]
		if to == "" {
			to = "NVSwitch"
		}
		all = append(all, branch{fmt.Sprintf("NVLink x%d to %s, %.4g GB/s", l.Count, to, float64(l.Count)*topo.NVLinkBandwidth(g.SM)), nil})
	}
	for _, c := range g.C2C {
		all = append(all, branch{fmt.Sprintf("C2C x%d to the CPU, %.4g GB/s", c.Count, float64(c.Count)*float64(c.MBps)/1000), nil})
	}
	return all
}

func ports(n *topo.NIC) (all []branch) {
	for _, p := range n.Ports {
		text := strings.TrimSpace(fmt.Sprintf("port %d %s", p.Number, p.Name)) + fmt.Sprintf("  %.4g GB/s", p.Bandwidth())
		if p.GDR {
			text += ", GPU-direct RDMA"
		}
		if p.Coll {
			text += ", reduces in the network"
		}
		if p.Off {
			text += ", not used for messages"
		}
		all = append(all, branch{text, nil})
	}
	return all
}

func showBranches(out io.Writer, indent string, all []branch) {
	for k, b := range all {
		arm, next := "├─ ", "│  "
		if k == len(all)-1 {
			arm, next = "└─ ", "   "
		}
		fmt.Fprintln(out, indent+arm+b.text)
		showBranches(out, indent+next, b.below)
	}
}

var meanings = [...]string{path.LOC: "itself", path.NVL: "NVLink", path.NVB: "NVLink through another GPU", path.C2C: "chip to chip",
	path.PIX: "one PCI switch", path.PXB: "several PCI switches", path.P2C: "chip to chip, then the CPU's PCI",
	path.PXN: "NVLink to the GPU beside the port, which sends", path.PHB: "through the CPU", path.SYS: "between NUMA nodes",
	path.NET: "over the network", path.DIS: "not connected"}

// showMatrix is a table of the paths, each with type and GB/s, and the types explained. Ports that are alike share a row and a column.
func showMatrix(out io.Writer, t *path.Table) error {
	ports, alike := alikePorts(t)
	ends := append(append([]int(nil), t.Graph.GPUs...), ports...)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nGB/s")
	for _, to := range ends {
		fmt.Fprintf(w, "\t%s", t.Graph.Nodes[to].Name)
	}
	var seen [path.DIS + 1]bool
	for _, from := range ends {
		fmt.Fprintf(w, "\n%s", t.Graph.Nodes[from].Name)
		for _, to := range ends {
			p := t.Between(from, to)
			if seen[p.Type] = true; from == to {
				fmt.Fprint(w, "\t-")
			} else {
				fmt.Fprintf(w, "\t%s %.4g", p.Type, p.Bandwidth)
			}
		}
	}
	fmt.Fprintln(w)
	_ = w.Flush()
	fmt.Fprintln(out, "\nrow sends to column; best first")
	for typ, text := range meanings {
		if seen[typ] && typ != int(path.LOC) {
			fmt.Fprintf(out, "  %s  %s\n", path.Type(typ), text)
		}
	}
	for _, n := range ports {
		if len(alike[n]) > 0 {
			fmt.Fprintf(out, "%s stands for %s as well\n", t.Graph.Nodes[n].Name, list(alike[n]))
		}
	}
	return nil
}

// alikePorts are the ports that differ in their paths from and to GPUs, and for each the names of the others like it.
func alikePorts(t *path.Table) (different []int, alike map[int][]string) {
	first := map[string]int{}
	alike = map[int][]string{}
	for _, port := range t.Graph.Ports {
		var b strings.Builder
		for _, gpu := range t.Graph.GPUs {
			to, from := t.Between(gpu, port), t.Between(port, gpu)
			fmt.Fprintln(&b, to.Type, to.Bandwidth, from.Type, from.Bandwidth)
		}
		if like, ok := first[b.String()]; ok {
			alike[like] = append(alike[like], t.Graph.Nodes[port].Name)
			continue
		}
		first[b.String()] = port
		different = append(different, port)
	}
	return different, alike
}
