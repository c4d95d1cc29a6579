package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/sysfs"
)

// leastProbe is what a message has at least, in bytes, whose rate is kept for rings to go by.
const leastProbe = 4 << 10

// probe is a run that measures the ways between ranks, in place of operations.
type probe struct {
	bytes   size
	seconds float64
	asJSON  bool
	forget  bool // measures are not kept
}

func topoProbeCommand(lib *string) *cobra.Command {
	a, p := newAsked(nil), &probe{bytes: 4 << 20}
	cmd := &cobra.Command{
		Use: "probe", Short: "measures the rate and latency between ranks, and keeps them", Args: nothingMore,
		Long: "Measures between each two ranks, in both directions, what a second carries and how long a short message takes, by messages of " +
			"the library. Pairs that share no rank are measured side by side, so that N ranks need N-1 rounds (N if that is odd). Ranks " +
			"come from where those of hccl perf do; those that this tool starts are bound to a processor each, dealt out to the last-level " +
			"caches in turn, two for each unless told.\n\nThe measures within hosts are kept by the ranks' places and the host's topology " +
			"(HCCL_COST_FILE, or the user's cache); the library then orders rings by them, and hccl topo matrix tells them. Those of " +
			"more ranks than processors are told and not kept.",
		Example: "  hccl topo probe\n  mpirun -np 8 --bind-to core hccl topo probe --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.lib = *lib
			w, trouble := detect(os.Getenv)
			if a.asRanks == 0 && w == nil {
				a.asRanks = max(len(seats(0)), 2)
			}
			if err := a.settleRanks(cmd.Flags(), w, trouble); err != nil {
				return err
			}
			if a.ranks < 2 {
				return fmt.Errorf("%d rank: a way needs two; see --ranks", a.ranks)
			}
			if p.bytes < leastProbe {
				return fmt.Errorf("-b %d: so short a message tells the latency and not the rate; give %d or more", p.bytes, leastProbe)
			}
			a.probe, a.limit = p, 10*p.seconds+60
			return a.begin()
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	a.threads, a.held, p.seconds = 1, 1, 5
	f.Var(ranged(&a.asRanks, 0, 0, mostRanks), "ranks", "number of ranks, all on this machine; 0: from the environment, or two for each cache")
	f.BoolVar(&a.asThreads, "threads", false, "ranks are threads of one process, not processes")
	f.VarP(&p.bytes, "bytes", "b", "size of the long messages")
	f.Var(&duration{&p.seconds, 0.01, 3600}, "seconds", "time for all rounds together; each takes one message at least")
	f.BoolVarP(&p.asJSON, "json", "J", false, "as JSON, in the form of hccl topo matrix")
	f.BoolVar(&p.forget, "forget", false, "do not keep the measures")
	f.StringVar(&a.meet.folder, "meet", "", "`FOLDER` shared by all hosts, where processes of Open MPI or Slurm find each other")
	f.Var(ranged(&a.as, -1, -1, mostRanks-1), "as-process", "")
	_ = f.MarkHidden("as-process")
	return cmd
}

// probePairs is what a rank does in place of a sweep. Rank 0 tells what all found.
func (r *runner) probePairs() error {
	if r.world == nil {
		seats(r.ranks)[r.first].sit()
	}
	watch := r.patient(r.first, "the probe")
	defer watch.Stop()
	f := &r.page.of[r.first]
	numa, cache := sysfs.Standing(os.DirFS("/"), allowed())
	f.numa, f.cache = int32(numa), int32(cache)
	if err := r.join(); err != nil {
		return err
	}
	found, err := r.allPairs()
	if err == nil {
		err = r.comms[0].destroy()
	}
	if err != nil {
		return err
	}
	return r.tellPairs(found)
}

// allPairs meets one rank after the other and returns what all ranks measured: from, to.
func (r *runner) allPairs() ([][]cost.Measured, error) {
	all := make([][]cost.Measured, r.ranks)
	for k := range all {
		all[k] = make([]cost.Measured, r.ranks)
	}
	rounds := tournament(r.ranks)
	c, err := newChat(r, r.probe.seconds/float64(len(rounds))/2)
	if err != nil {
		return nil, err
	}
	for _, peers := range rounds {
		if err := r.together(); err != nil {
			return nil, err
		}
		f := &r.page.of[r.first]
		if peer := peers[r.first]; peer >= 0 {
			v, err := c.with(peer)
			if err != nil {
				return nil, err
			}
			f.seconds, f.p50 = v.Rate, v.Latency
		}
		if err := r.together(); err != nil {
			return nil, err
		}
		for from, to := range peers {
			if to >= 0 {
				all[from][to] = cost.Measured{Rate: r.page.of[from].seconds, Latency: r.page.of[from].p50}
			}
		}
	}
	runtime.KeepAlive(c)
	return all, r.together()
}

// tournament has each two of n ranks meet once, in as few rounds as can be: one of them stays and the others go around the table, one
// seat a round. For each round the partner of each rank, -1 for one that sits out.
//
//	0 1 2      0 5 1      0 4 5
//	5 4 3  ->  4 3 2  ->  3 2 1  -> ...
func tournament(n int) (rounds [][]int) {
	even := n + n%2
	table := make([]int, even)
	for k := range table {
		table[k] = k
	}
	for range even - 1 {
		peers := make([]int, n)
		for k := range even / 2 {
			a, b := table[k], table[even-1-k]
			if a == n || b == n { // the seat that nobody has
				peers[min(a, b)] = -1
				continue
			}
			peers[a], peers[b] = b, a
		}
		rounds = append(rounds, peers)
		last := table[even-1]
		copy(table[2:], table[1:even-1])
		table[1] = last
	}
	return rounds
}
