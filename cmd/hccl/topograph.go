package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

func topoGraphCommand() *cobra.Command {
	var hosts, channels int
	cmd := &cobra.Command{
		Use: "graph FILE", Short: "writes the rings found as NCCL_GRAPH_FILE", Args: oneFile,
		Long: "Searches rings as hccl topo search does and writes them to stdout in the form of NCCL_GRAPH_FILE. NCCL's channels have one " +
			"bandwidth, so a ring of a larger weight is there more often; what that loses stands on stderr. Rings that pass a host in " +
			"several parts have no such form and are left out. So are trees: a channel is a chain of GPUs there, and those that are found " +
			"branch, begin at every rank, and part at switches.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if hosts < 1 || channels < 1 || channels > 64 {
				return fmt.Errorf("--hosts is 1 or more and --channels from 1 to 64, not %d and %d", hosts, channels)
			}
			m, report, err := readMachine(args[0])
			if err != nil {
				return err
			}
			warn(cmd.ErrOrStderr(), args[0], report)
			t, rings, err := ringsFor(topo.Build(m), hosts)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			found, kept := ncclxml.RingSearch(t, wholeRings(t.Graph, rings), channels)
			fmt.Fprintf(cmd.ErrOrStderr(), "%s of %.4g GB/s: %.4g of the %.4g GB/s of the rings\n", plural.Of(len(found.Channels), "channel"),
				found.Intra, kept, rings.Bus)
			return ncclxml.WriteSearches(cmd.OutOrStdout(), []ncclxml.Search{found})
		},
	}
	cmd.Flags().IntVarP(&hosts, "hosts", "n", 1, "`NUMBER` of such machines")
	cmd.Flags().IntVar(&channels, "channels", 32, "at most this `NUMBER` of channels")
	return cmd
}

// ringsFor are the paths in a host, and the rings of so many like it. A machine without GPUs has none.
func ringsFor(g *topo.Graph, hosts int) (t *path.Table, rings pack.RingPacking, err error) {
	if err := pack.Searchable(len(g.GPUs)); err != nil {
		return nil, rings, err
	}
	t = path.New(g)
	h := pack.NewHost(t)
	if len(h.GPUs) == 0 {
		return t, rings, nil
	}
	if err := h.Check(); err != nil {
		return nil, rings, err
	}
	return t, pack.Search(&h.Network, hosts, pack.Thorough).Rings, nil
}

// wholeRings are those that pass a host in one part.
func wholeRings(g *topo.Graph, all pack.RingPacking) (rings []ncclxml.WeightedRing) {
	for _, r := range all.Rings {
		if len(r.Segments) != 1 {
			continue
		}
		s := r.Segments[0]
		ring := ncclxml.WeightedRing{Weight: r.Weight, In: -1, Out: -1}
		for _, gpu := range s.GPUs {
			ring.GPUs = append(ring.GPUs, g.GPUs[gpu])
		}
		if s.In >= 0 && s.Out >= 0 {
			ring.In, ring.Out = g.Ports[s.In], g.Ports[s.Out]
		}
		rings = append(rings, ring)
	}
	return rings
}
