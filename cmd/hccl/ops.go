package main

// A buffer is seen as parts: all of it for an all-reduce, one per rank for an all-gather. An operation says how many parts are sent
// and received, how long they are, and where each received part comes from; sizes, rates and the check follow from that.

// origin is where a received part comes from: part of one rank's send buffer, or the reduction of that part over all ranks.
type origin struct {
	rank int // ignored where reduced
	part int
	sum  bool
}

// operation is one row of the table of what can be measured.
type operation struct {
	name     string // as nccl-tests name it, without _perf
	about    string // what it does, in the help
	call     callID
	reduces  bool
	rooted   bool
	apart    bool                               // has no in-place form: the two buffers then lie side by side
	sends    func(n int) int                    // parts of a rank's send buffer
	receives func(n int) int                    // parts of a rank's receive buffer
	from     func(part, me, n, root int) origin // where a received part comes from
	fills    func(me, root int) bool            // whether this rank's receive buffer is written
	offsets  func(me, n int) (send, recv int)   // in place: with which part of the larger buffer each of the two begins
	weight   func(rank, part int) int           // V forms: thirds of the even length that a rank's part to send has
	factor   func(n int) float64                // bus bandwidth over algorithm bandwidth
}

func one(int) int              { return 1 }
func all(n int) int            { return n }
func everywhere(_, _ int) bool { return true }
func atRoot(me, root int) bool { return me == root }
func atStart(_, _ int) (int, int) {
	return 0, 0
}
func share(n int) float64               { return float64(n-1) / float64(n) }
func unity(int) float64                 { return 1 }
func mine(me, _ int) (int, int)         { return me, 0 }
func ownTarget(me, _ int) (int, int)    { return 0, me }
func fromAll(_, _, _, _ int) origin     { return origin{sum: true} }
func fromEach(part, _, _, _ int) origin { return origin{rank: part} }
func blockOf(_, me, _, _ int) origin    { return origin{part: me, sum: true} }
func across(part, me, _, _ int) origin  { return origin{rank: part, part: me} }

// thirds of the even length: blocks of three lengths, none empty.
func thirds(k int) int { return 1 + k%3 }

// The factors are those of nccl-tests (doc/PERFORMANCE.md there): the traffic that the slowest link must carry.
var operations = []operation{
	{name: "all_reduce", about: "reduce, the result everywhere", call: callAllReduce, reduces: true,
		sends: one, receives: one, fills: everywhere, offsets: atStart, from: fromAll,
		factor: func(n int) float64 { return 2 * share(n) }},
	{name: "reduce", about: "reduce, the result at the root", call: callReduce, reduces: true, rooted: true,
		sends: one, receives: one, fills: atRoot, offsets: atStart, from: fromAll, factor: unity},
	{name: "broadcast", about: "copy the root's buffer to all", call: callBroadcast, rooted: true,
		sends: one, receives: one, fills: everywhere, offsets: atStart, factor: unity,
		from: func(_, _, _, root int) origin { return origin{rank: root} }},
	{name: "all_gather", about: "collect a block of each rank, everywhere", call: callAllGather,
		sends: one, receives: all, fills: everywhere, offsets: mine, from: fromEach, factor: share},
	{name: "reduce_scatter", about: "reduce, a block of the result at each rank", call: callReduceScatter, reduces: true,
		sends: all, receives: one, fills: everywhere, offsets: ownTarget, from: blockOf, factor: share},
	{name: "alltoall", about: "a block from each rank to each", call: callAllToAll, apart: true,
		sends: all, receives: all, fills: everywhere, offsets: atStart, from: across, factor: share},
	{name: "gather", about: "collect a block of each rank at the root", call: callGather, rooted: true,
		sends: one, receives: all, fills: atRoot, offsets: mine, from: fromEach, factor: share},
	{name: "scatter", about: "a block of the root's buffer to each rank", call: callScatter, rooted: true,
		sends: all, receives: one, fills: everywhere, offsets: ownTarget, factor: share,
		from: func(_, me, _, root int) origin { return origin{rank: root, part: me} }},
	{name: "sendrecv", about: "send to the next rank, receive from the one before", call: callSendRecv, apart: true,
		sends: one, receives: one, fills: everywhere, offsets: atStart, factor: unity,
		from: func(_, me, n, _ int) origin { return origin{rank: (me + n - 1) % n} }},
	{name: "all_gather_v", about: "all_gather of blocks of unequal lengths", call: callAllGatherV,
		sends: one, receives: all, fills: everywhere, offsets: mine, from: fromEach, factor: share,
		weight: func(rank, _ int) int { return thirds(rank) }},
	{name: "reduce_scatter_v", about: "reduce_scatter of blocks of unequal lengths", call: callReduceScatterV, reduces: true,
		sends: all, receives: one, fills: everywhere, offsets: ownTarget, from: blockOf, factor: share,
		weight: func(_, part int) int { return thirds(part) }},
	{name: "alltoall_v", about: "alltoall of blocks of unequal lengths", call: callAllToAllV, apart: true,
		sends: all, receives: all, fills: everywhere, offsets: atStart, from: across, factor: share,
		weight: func(rank, part int) int { return thirds(rank + part) }},
}

// operationNamed finds an operation by its name, with or without the underscores and the _perf of nccl-tests' programs.
func operationNamed(name string) *operation {
	for k := range operations {
		if plain(operations[k].name) == plain(name) {
			return &operations[k]
		}
	}
	return nil
}
