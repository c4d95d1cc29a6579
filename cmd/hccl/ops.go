package main

// A buffer is seen as parts of equal length: all of it for an all-reduce, one per rank for an all-gather. An operation says how
// many parts are sent and received and where each received part comes from; sizes, rates and the check follow from that.

// origin is where a received part comes from: part of one rank's send buffer, or the reduction of that part over all ranks.
type origin struct {
	rank int // ignored where reduced
	part int
	sum  bool
}

// operation is one row of the table of what can be measured.
type operation struct {
	name     string // as nccl-tests name it, without _perf
	call     callID
	reduces  bool
	rooted   bool
	inPlace  bool
	sends    func(n int) int                    // parts of a rank's send buffer
	receives func(n int) int                    // parts of a rank's receive buffer
	from     func(part, me, n, root int) origin // where a received part comes from
	fills    func(me, root int) bool            // whether this rank's receive buffer is written
	offsets  func(me, n int) (send, recv int)   // in place: where the two buffers start in one, in parts
	factor   func(n int) float64                // bus bandwidth over algorithm bandwidth
}

func one(int) int              { return 1 }
func all(n int) int            { return n }
func everywhere(_, _ int) bool { return true }
func atRoot(me, root int) bool { return me == root }
func atStart(_, _ int) (int, int) {
	return 0, 0
}
func share(n int) float64 { return float64(n-1) / float64(n) }

// The factors are those of nccl-tests (doc/PERFORMANCE.md there): the traffic that the slowest link must carry.
var operations = []operation{
	{name: "all_reduce", call: callAllReduce, reduces: true, inPlace: true, sends: one, receives: one, fills: everywhere, offsets: atStart,
		from:   func(_, _, _, _ int) origin { return origin{sum: true} },
		factor: func(n int) float64 { return 2 * share(n) }},
	{name: "reduce", call: callReduce, reduces: true, rooted: true, inPlace: true, sends: one, receives: one, fills: atRoot, offsets: atStart,
		from:   func(_, _, _, _ int) origin { return origin{sum: true} },
		factor: func(int) float64 { return 1 }},
	{name: "broadcast", call: callBroadcast, rooted: true, inPlace: true, sends: one, receives: one, fills: everywhere, offsets: atStart,
		from:   func(_, _, _, root int) origin { return origin{rank: root} },
		factor: func(int) float64 { return 1 }},
	{name: "all_gather", call: callAllGather, inPlace: true, sends: one, receives: all, fills: everywhere,
		offsets: func(me, _ int) (int, int) { return me, 0 },
		from:    func(part, _, _, _ int) origin { return origin{rank: part} },
		factor:  share},
	{name: "reduce_scatter", call: callReduceScatter, reduces: true, inPlace: true, sends: all, receives: one, fills: everywhere,
		offsets: func(me, _ int) (int, int) { return 0, me },
		from:    func(_, me, _, _ int) origin { return origin{part: me, sum: true} },
		factor:  share},
	{name: "alltoall", call: callAllToAll, sends: all, receives: all, fills: everywhere, offsets: atStart,
		from:   func(part, me, _, _ int) origin { return origin{rank: part, part: me} },
		factor: share},
}
