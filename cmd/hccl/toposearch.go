package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// mostPrinted is how many ranks' plans are printed: a tree from each of them to each of them is as long as their square.
const mostPrinted = 1024

func topoSearchCommand() *cobra.Command {
	var hosts int
	var asJSON, summary bool
	cmd := &cobra.Command{
		Use: "search FILE", Short: "finds rings and trees, and how far they are from the optimum", Args: oneFile,
		Long: "Finds weighted rings and trees for copies of the machine in the file, joined by a network that never limits, and the " +
			"bounds that no such rings and no schedule at all can exceed. All bandwidths are bus bandwidths in GB/s on the topology's " +
			"own figures: a model, not a measurement.",
		RunE: func(cmd *cobra.Command, args []string) error {
			start := time.Now()
			host, err := readHost(args[0], hosts)
			if err != nil {
				return err
			}
			if most := mostPrinted / max(1, len(host.GPUs)); asJSON && !summary && hosts > max(most, 1) {
				return fmt.Errorf("plans of %d hosts with %d GPUs are too long to print: add --summary, or take at most %d hosts",
					hosts, len(host.GPUs), most)
			}
			found := pack.Search(&host.Network, hosts, pack.Thorough)
			channels, err := join(host, &found)
			if err != nil {
				return err
			}
			if asJSON && !summary {
				onlySayable(host, &found)
			}
			s := summaryOf(args[0], &found, time.Since(start))
			s.Channels = len(channels)
			switch {
			case !asJSON:
				return printSearch(cmd.OutOrStdout(), &s, host, &found, summary)
			case summary:
				return encode(cmd.OutOrStdout(), s)
			}
			return encode(cmd.OutOrStdout(), searchOf(s, host, &found))
		},
	}
	cmd.Flags().IntVarP(&hosts, "hosts", "n", 1, "`NUMBER` of such machines")
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON, with the rings and trees themselves")
	cmd.Flags().BoolVar(&summary, "summary", false, "the figures alone")
	return cmd
}

func topoBoundCommand() *cobra.Command {
	var hosts int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "bound FILE", Short: "says what rings and what any schedule can reach at most", Args: oneFile,
		Long: "Computes what no schedule of an all-gather can exceed on copies of the machine in the file, with the cut that limits it, " +
			"and what no rings on its fixed paths can. Bus bandwidths in GB/s.",
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := readHost(args[0], hosts)
			if err != nil {
				return err
			}
			limit := pack.Bound(&host.Network, hosts)
			b := boundOf(limit, pack.Rings(&host.Network, hosts, limit, pack.Thorough))
			if asJSON {
				return encode(cmd.OutOrStdout(), b)
			}
			out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintf(out, "any schedule\t%.6g GB/s\t%s\n", b.AnySchedule, b.Cut)
			fmt.Fprintf(out, "rings\t%.6g GB/s\tleaving a host by the port they came in by\n", b.RingPacking)
			if b.RingCross > b.RingPacking {
				fmt.Fprintf(out, "\t%.6g GB/s\tleaving by any port\n", b.RingCross)
			}
			return out.Flush()
		},
	}
	cmd.Flags().IntVarP(&hosts, "hosts", "n", 1, "`NUMBER` of such machines")
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON")
	return cmd
}

// encode writes JSON in one line: plans are long.
func encode(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// onlySayable leaves out trees that the JSON cannot name: some files give several switches one bus id.
func onlySayable(h *pack.Host, r *pack.Result) {
	if !awayFrom(h).sayable(&r.Gather) {
		r.Gather = pack.TreePacking{}
	}
	if !towards(h, r.Turned).sayable(&r.Scatter) {
		r.Scatter = pack.TreePacking{}
	}
}

// join orders the ranks of all hosts in channels.
func join(h *pack.Host, r *pack.Result) ([]pack.Channel, error) {
	sites := make([]pack.Site, r.Hosts)
	for k := range sites {
		for g := range h.GPUs {
			sites[k].Ranks = append(sites[k].Ranks, k*len(h.GPUs)+g)
		}
	}
	return pack.Join([]pack.RingPacking{r.Rings}, sites)
}

// readHost reads a topology and finds its paths.
func readHost(file string, hosts int) (*pack.Host, error) {
	if hosts < 1 || hosts > 1<<16 {
		return nil, fmt.Errorf("--hosts is %d: want 1 to %d", hosts, 1<<16)
	}
	m, _, err := readMachine(file)
	if err != nil {
		return nil, err
	}
	g := topo.Build(m)
	if err := pack.Searchable(len(g.GPUs)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	h := pack.NewHost(path.New(g))
	if err := h.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w; see hccl topo check", file, err)
	}
	if len(h.GPUs) == 0 {
		return nil, fmt.Errorf("%s has no GPU with a rank: nothing to search; see hccl topo check", file)
	}
	return h, nil
}

func printSearch(to io.Writer, s *searchSummary, h *pack.Host, r *pack.Result, summary bool) error {
	out := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "%s, %s, %s, %s, %.3g ms\n\n", s.File, plural.Of(s.Hosts, "host"), plural.Of(s.Ranks, "rank"),
		plural.Of(s.Channels, "channel"), s.Ms)
	fmt.Fprintf(out, "\tGB/s\tof the bound\n")
	for _, line := range []struct {
		what string
		bw   float64
	}{{"rings", s.Ring.BW}, {"trees", s.Tree.BW}, {"all-gather", s.AllGather.BW}, {"reduce-scatter", s.ReduceScatter.BW},
		{"all-reduce", s.AllReduce.BW}, {"bound for rings", s.Bound.RingCross}, {"bound for any schedule", s.Bound.AnySchedule}} {
		share := ""
		if s.Bound.AnySchedule > 0 {
			share = fmt.Sprintf("%.1f %%", 100*line.bw/s.Bound.AnySchedule)
		}
		fmt.Fprintf(out, "%s\t%.6g\t%s\n", line.what, line.bw, share)
	}
	fmt.Fprintf(out, "limited by\t%s\n", s.Bound.Cut)
	if err := out.Flush(); err != nil || summary {
		return err
	}
	for _, ring := range r.Rings.Rings {
		fmt.Fprintf(to, "ring of %.6g GB/s:", ring.Weight)
		for _, segment := range ring.Segments {
			fmt.Fprintf(to, " %s", segmentText(h, segment))
		}
		fmt.Fprintln(to)
	}
	return nil
}

func segmentText(h *pack.Host, s pack.Segment) (text string) {
	if s.In >= 0 {
		text = fmt.Sprintf("net%d ", h.Ports[s.In])
	}
	for k, g := range s.GPUs {
		if k > 0 {
			text += " "
		}
		text += fmt.Sprint(h.Ranks[g])
	}
	if s.Out >= 0 {
		text += fmt.Sprintf(" net%d", h.Ports[s.Out])
	}
	return text
}

func summaryOf(file string, r *pack.Result, took time.Duration) searchSummary {
	gather, _ := r.AllGather()
	scatter, _ := r.ReduceScatter()
	reduce, _ := r.AllReduce()
	return searchSummary{File: filepath.Base(file), Hosts: r.Hosts, Ranks: r.Ranks, Ms: float64(took.Microseconds()) / 1000,
		Ring: bandwidth{short(r.Rings.Bus)}, Tree: bandwidth{short(r.TreeBus())}, AllGather: bandwidth{short(gather)},
		ReduceScatter: bandwidth{short(scatter)}, AllReduce: bandwidth{short(reduce)}, Bound: boundOf(r.Limit, r.Rings)}
}
