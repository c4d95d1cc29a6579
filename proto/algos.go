package proto

import (
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/coll"
)

// AlgoSet is a set of algorithms.
type AlgoSet uint8

// foreign stands for the algorithms that NCCL has and this library has not: they can be named, and excluded, but not taken.
const (
	foreign AlgoSet = 1 << 7
	direct          = AlgoSet(1<<OneShot | 1<<TwoShot)
	every           = foreign | direct | AlgoSet(1<<Ring|1<<Tree|1<<Star)
)

// Has reports whether a is in s.
func (s AlgoSet) Has(a Algo) bool { return s>>a&1 != 0 }

func (s AlgoSet) String() string {
	var names []string
	for a := Algo(0); a < NumAlgos; a++ {
		if s.Has(a) {
			names = append(names, a.String())
		}
	}
	if s&foreign != 0 {
		names = append(names, "others that NCCL has")
	}
	return strings.Join(names, ", ")
}

// Algos says for each function which algorithms may be taken; the empty set leaves the choice open.
type Algos struct {
	sets  [coll.NumFuncs]AlgoSet
	named [coll.NumFuncs]bool // the list has a part for this function alone
}

func (a *Algos) set(f coll.Func) AlgoSet {
	if f < coll.NumFuncs {
		return a.sets[f]
	}
	return 0
}

var algoWords = map[string]AlgoSet{
	"ring": 1 << Ring, "direct": direct, "oneshot": 1 << OneShot, "twoshot": 1 << TwoShot, "auto": every,
	"tree": 1 << Tree, "star": 1 << Star,
	"collnetdirect": foreign, "collnetchain": foreign, "collnet": foreign, "nvls": foreign, "nvlstree": foreign,
	"pat": foreign,
}

var funcWords = map[string][]coll.Func{
	"allreduce": {coll.AllReduce}, "reduce": {coll.Reduce}, "broadcast": {coll.Broadcast},
	"allgather":     {coll.AllGather, coll.AllGatherV},
	"reducescatter": {coll.ReduceScatter, coll.ReduceScatterV},
	"alltoall":      {coll.AlltoAll, coll.AlltoAllV},
	"gather":        {coll.Gather}, "scatter": {coll.Scatter},
}

// maxAlgoText bounds a list: longer ones are no list that a person wrote.
const maxAlgoText = 4096

// ParseAlgos reads a list of algorithms as NCCL_ALGO has them: "ring,tree", "^tree" (all but), "allreduce:ring;broadcast:direct"
// (for some functions). Case does not matter. The empty text leaves everything open.
func ParseAlgos(text string) (Algos, error) {
	var a Algos
	if len(text) > maxAlgoText {
		return Algos{}, fmt.Errorf("a list of algorithms of %d characters is too long", len(text))
	}
	for part := range strings.SplitSeq(strings.ToLower(text), ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if err := a.parse(part); err != nil {
			return Algos{}, err
		}
	}
	return a, nil
}

// parse reads one part: a list for one function or for all. A later part overrides an earlier one.
func (a *Algos) parse(part string) error {
	name, list, one := strings.Cut(part, ":")
	if !one {
		set, err := parseSet(part)
		for f := range a.sets {
			a.sets[f] = set
		}
		return err
	}
	funcs, ok := funcWords[strings.TrimSpace(name)]
	if !ok {
		return fmt.Errorf("%q in a list of algorithms is no function; there are allreduce, reduce, broadcast, allgather, "+
			"reducescatter, alltoall, gather, scatter", strings.TrimSpace(name))
	}
	set, err := parseSet(list)
	for _, f := range funcs {
		a.sets[f], a.named[f] = set, true
	}
	return err
}

func parseSet(list string) (AlgoSet, error) {
	names, not := strings.CutPrefix(strings.TrimSpace(list), "^")
	var set AlgoSet
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		s, ok := algoWords[name]
		if !ok {
			return 0, fmt.Errorf("%q is no algorithm; there are ring, tree, star, direct, oneshot and twoshot", name)
		}
		set |= s
	}
	if not {
		set = every &^ (set | foreign)
	}
	if set == 0 {
		return 0, fmt.Errorf("%q leaves no algorithm", list)
	}
	return set, nil
}

// Unfit lists the functions that no algorithm of s.Algos can do, so that an order fails and any other list is not gone by. Functions
// that have one form only count where the list names them: nobody means them by "ring".
func (s *Setting) Unfit() (all []coll.Func) {
	for _, f := range []coll.Func{coll.AllReduce, coll.Reduce, coll.Broadcast, coll.AllGather, coll.ReduceScatter, coll.AlltoAll,
		coll.Gather, coll.Scatter} {
		if (has(f, Ring) || s.Algos.named[f]) && !s.anyFor(f) {
			all = append(all, f)
		}
	}
	return all
}

func (s *Setting) anyFor(f coll.Func) bool {
	set := s.Algos.set(f)
	for a := range NumAlgos {
		if set.Has(a) && has(f, a) && (a.Reproducible() || !s.Reproducible || !f.Reduces()) {
			return true
		}
	}
	return set == 0
}
