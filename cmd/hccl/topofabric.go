package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/fabric"
)

const fabricHelp = `Looks at the network above the hosts. NETWORK is a file, or one of
  fat-tree:K                     K ports a switch, three levels, K^3/4 hosts
  dragonfly:A,P,H[,G]            G groups of A routers, each with P hosts and H links to other groups
  rail:HOSTS,RAILS,PERLEAF,SPINES  NIC r of each host on a leaf of rail r
with links of --gbps. A file is JSON with hosts, switches and links, as --write prints; or what lldpcli show neighbors -f json
says on this host, which shows the first switches only.

Without flags it says what there is. --table prints the routing table of a host. Each --ring is a group of hosts ("all", or names
with commas) that communicates around a ring at the same time as the others: said is what the most loaded link carries when the
parts of each flow are spread over up to -k ways, and when each flow takes the one shortest way.`

// fabricFlags is what the command was asked for.
type fabricFlags struct {
	gbps  float64
	k     int
	parts int
	table string
	rings []string
	json  bool
	write bool
}

func topoFabricCommand() *cobra.Command {
	var o fabricFlags
	cmd := &cobra.Command{Use: "fabric NETWORK", Short: "shows the network above the hosts: routes, and how flows share links",
		Long: fabricHelp, Args: oneNetwork}
	f := cmd.Flags()
	f.Float64Var(&o.gbps, "gbps", 25, "`GB/s` of a generated network's links, each way")
	f.IntVarP(&o.k, "ways", "k", 8, "how many `ways` between two hosts are looked at")
	f.Var(ranged(&o.parts, 2, 1, 1024), "parts", "into how many parts (channels) each flow is cut")
	f.StringVar(&o.table, "table", "", "print the routing table of `HOST`")
	f.StringArrayVar(&o.rings, "ring", nil, "a group of `HOSTS` that communicates around a ring; may be given several times")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.write, "write", false, "print the network as a file that can be edited and read")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		net, err := readFabric(args[0], o.gbps)
		if err != nil {
			return err
		}
		return o.show(cmd.OutOrStdout(), net)
	}
	return cmd
}

const networks = "a file, or fat-tree:K, dragonfly:A,P,H or rail:HOSTS,RAILS,PERLEAF,SPINES"

func oneNetwork(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one network: %s", networks)
	}
	return nil
}

// readFabric makes the network that spec names.
func readFabric(spec string, gbps float64) (*fabric.Fabric, error) {
	kind, rest, generated := strings.Cut(spec, ":")
	sizes := map[string]int{"fat-tree": 1, "dragonfly": 3, "rail": 4}
	least, known := sizes[kind]
	if !generated || !known {
		return readFabricFile(spec)
	}
	n, err := numbersOf(rest)
	if err != nil || len(n) < least || len(n) > 4 {
		return nil, fmt.Errorf("%q: wanted are %d numbers with commas behind %s:", spec, least, kind)
	}
	switch kind {
	case "fat-tree":
		return fabric.FatTree(n[0], gbps)
	case "dragonfly":
		return fabric.Dragonfly(fabric.DragonflySize{Routers: n[0], Hosts: n[1], Global: n[2], Groups: append(n, 0)[3]}, gbps)
	}
	return fabric.RailOptimised(fabric.RailSize{Hosts: n[0], Rails: n[1], PerLeaf: n[2], Spines: n[3]}, gbps)
}

func numbersOf(text string) (numbers []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", strings.TrimSpace(word))
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// readBounded is a file's content, or what a pipe brings: so much, and a byte more that shows that there is more.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// readFabricFile reads a network, or this host's neighbours.
func readFabricFile(name string) (*fabric.Fabric, error) {
	text, err := readBounded(name, fabric.MostBytes)
	if err != nil {
		return nil, fmt.Errorf("%w; name %s", err, networks)
	}
	neighbors, notLLDP := fabric.ReadLLDP(text)
	if notLLDP != nil {
		net, err := fabric.ReadFile(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return net, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	speeds := map[string]float64{}
	for _, n := range neighbors {
		speeds[n.Interface] = interfaceSpeed(n.Interface)
	}
	net, err := fabric.FromNeighbors([]fabric.Seen{{Host: host, Neighbors: neighbors, GBps: speeds}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return net, nil
}

// interfaceSpeed is what the kernel says of an interface, in GB/s; 10 Gbit/s where it says nothing, as NCCL counts.
func interfaceSpeed(name string) float64 {
	text, err := os.ReadFile("/sys/class/net/" + name + "/speed")
	if mbps, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && mbps > 0 {
		return float64(mbps) / 8000
	}
	return 1.25
}

func (o *fabricFlags) show(out io.Writer, net *fabric.Fabric) error {
	if o.write {
		text, err := net.Write()
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	router, err := fabric.NewRouter(net, o.k)
	switch {
	case err != nil:
		return err
	case o.table != "":
		return o.showTable(out, net, router)
	case len(o.rings) > 0:
		return o.showRings(out, net, router)
	}
	hosts := len(net.Hosts())
	if o.json {
		return writeIndented(out, map[string]any{"hosts": hosts, "switches": len(net.Nodes) - hosts, "links": len(net.Links) / 2,
			"assumed": net.Assumed})
	}
	fmt.Fprintf(out, "%d hosts, %d switches, %d links\n", hosts, len(net.Nodes)-hosts, len(net.Links)/2)
	if net.Assumed != "" {
		fmt.Fprintln(out, net.Assumed)
	}
	return nil
}

func hostOf(net *fabric.Fabric, name string) (int, error) {
	n := net.Find(strings.TrimSpace(name))
	if n < 0 || net.Nodes[n].Kind != fabric.Host {
		first := "none"
		if hosts := net.Hosts(); len(hosts) > 0 {
			first = net.Nodes[hosts[0]].Name
		}
		return 0, fmt.Errorf("there is no host %q in the network; the first one is %s", strings.TrimSpace(name), first)
	}
	return n, nil
}

func (o *fabricFlags) showTable(out io.Writer, net *fabric.Fabric, router *fabric.Router) error {
	from, err := hostOf(net, o.table)
	if err != nil {
		return err
	}
	table, err := router.Table(from)
	if err != nil {
		return err
	}
	if o.json {
		return writeIndented(out, table)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "to\tmetric\thops\tnext hops")
	for _, e := range table {
		fmt.Fprintf(w, "%s\t%.4g\t%d\t%s\n", e.To, e.Metric, e.Hops, strings.Join(e.NextHops, ", "))
	}
	return w.Flush()
}
