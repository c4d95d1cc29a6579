package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

func topoExplainCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "explain [FILE] FROM TO", Short: "tells which way data take between two ranks, and why", Args: cobra.ArbitraryArgs,
		Long: "Tells which way data take from one GPU to another, by which rules, and why other ways are not taken. FROM and TO are ranks, " +
			"or ports as net0. Without a file it is this machine. Ways that can be used side by side are listed with their sum; NCCL uses " +
			"the first only.",
		Example: "  hccl topo explain host.xml 0 5\n  hccl topo explain --file host.xml 0 net1\n",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" && (len(args) == 3 || len(args) > 0 && exists(args[0])) {
				file, args = args[0], args[1:]
			}
			if len(args) != 2 {
				return fmt.Errorf("name two ranks, not %d, and the file before them or with --file: hccl topo explain FILE 0 1", len(args))
			}
			t, err := tableOf(file)
			if err != nil {
				return err
			}
			return explain(cmd.OutOrStdout(), t, args[0], args[1])
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the topology `FILE`")
	return cmd
}

func explain(out io.Writer, t *path.Table, a, b string) error {
	from, err := endNamed(t.Graph, a)
	if err != nil {
		return err
	}
	to, err := endNamed(t.Graph, b)
	if err != nil {
		return err
	}
	e := t.Explain(from, to)
	g := t.Graph
	fmt.Fprintf(out, "%s to %s: %s\n  %s\n", g.Nodes[from].Name, g.Nodes[to].Name, pathText(g, e.Path), hops(g, e.Path))
	for _, r := range e.Rules {
		fmt.Fprintf(out, "\nrule: %s\n", r)
	}
	for _, o := range e.Others {
		fmt.Fprintf(out, "\nnot taken: %s\n  %s\n  %s\n", pathText(g, o.Path), hops(g, o.Path), o.Why)
		if o.Alike > 0 {
			fmt.Fprintf(out, "  %d more like it\n", o.Alike)
		}
	}
	if ways, sum := t.Ways(from, to); len(ways) > 1 {
		fmt.Fprintf(out, "\nside by side: %.4g GB/s\n", sum)
		for len(ways) > 0 {
			alike := 1
			for alike < len(ways) && ways[alike].Type == ways[0].Type && ways[alike].Bandwidth == ways[0].Bandwidth {
				alike++
			}
			fmt.Fprintf(out, "  %d x %s %.4g GB/s\n", alike, ways[0].Type, ways[0].Bandwidth)
			ways = ways[alike:]
		}
	}
	return nil
}

// endNamed finds a GPU by its rank, or a port or GPU by its name.
func endNamed(g *topo.Graph, name string) (int, error) {
	var known []string
	for _, list := range [][]int{g.GPUs, g.Ports} {
		for _, n := range list {
			own := g.Nodes[n].Name
			if own == name || own == "gpu"+name {
				return n, nil
			}
			known = append(known, own)
		}
	}
	if len(known) == 0 {
		return 0, fmt.Errorf("%s: the topology has no GPU with a rank and no port", name)
	}
	return 0, fmt.Errorf("%s: no such rank or port; there are %s", name, list(known))
}

func pathText(g *topo.Graph, p path.Path) string {
	if !p.Exists() && len(p.Links) == 0 {
		return "no way"
	}
	var latency time.Duration
	for _, l := range p.Links {
		latency += g.Links[l].Latency
	}
	return fmt.Sprintf("%s (%s), %.4g GB/s, about %v", p.Type, meanings[p.Type], p.Bandwidth, latency)
}

// hops draws the path: nodes, and between them the type and bandwidth of each link.
func hops(g *topo.Graph, p path.Path) string {
	var b strings.Builder
	last := ""
	for _, l := range p.Links {
		link := &g.Links[l]
		if link.Type == topo.LOC {
			continue // inside a GPU
		}
		if from := g.Nodes[link.From].Name; from != last {
			fmt.Fprintf(&b, "%s", map[bool]string{true: "  fabric  "}[last != ""]+from)
		}
		last = g.Nodes[link.To].Name
		fmt.Fprintf(&b, " -%s %.4g- %s", link.Type, link.Bandwidth, last)
	}
	return b.String()
}
