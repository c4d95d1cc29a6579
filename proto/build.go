package proto

import (
	"fmt"

	"hccl.dev/hccl/internal/coll"
)

// Build makes the plan of one rank. All ranks of an operation must build from keys that differ in Rank alone.
func Build(k Key) (*Plan, error) {
	if err := k.valid(); err != nil {
		return nil, err
	}
	b := builder{Key: k}
	p := &Plan{Key: k, Slots: 1, Steps: make([][]Step, k.Channels)}
	for c := range p.Steps {
		b.channel, b.steps = int32(c), nil
		b.build()
		p.Steps[c] = b.steps
	}
	p.Slots = k.slots()
	return p, p.seal()
}

func (k Key) valid() error {
	switch {
	case k.N < 1 || k.N > MaxRanks:
		return fmt.Errorf("plan for %d ranks: 1 to %d are possible", k.N, MaxRanks)
	case k.Rank < 0 || k.Rank >= k.N:
		return fmt.Errorf("plan for rank %d of %d", k.Rank, k.N)
	case k.Root < 0 || k.Root >= k.N || k.Root != 0 && !k.Func.Rooted():
		return fmt.Errorf("plan for %s with root %d of %d ranks", k.Func, k.Root, k.N)
	case k.Channels < 1 || k.Channels > maxChannels:
		return fmt.Errorf("plan with %d channels: 1 to %d are possible", k.Channels, maxChannels)
	case k.Order != nil && k.Order.of() != k.N:
		return fmt.Errorf("plan for %d ranks with an order of %d", k.N, k.Order.of())
	case k.Ahead < 0 || k.Ahead > MaxAhead:
		return fmt.Errorf("plan in which ranks are %d slices ahead: 0 to %d are possible", k.Ahead, MaxAhead)
	case k.Algo >= NumAlgos || !has(k.Func, k.Algo):
		return fmt.Errorf("%s has no %s form", k.Func, k.Algo)
	}
	return nil
}

// slots is the fewest slots with which every rank gets on. Where all ranks write and read in turn, as around a ring, one slot
// would have each wait for the next; a rank that offers several slices before it reads needs room for all of them.
func (k Key) slots() int {
	switch {
	case k.N == 1, k.Func == coll.Broadcast, k.Func == coll.Gather, k.Func == coll.Scatter, k.Func == coll.Reduce && k.Algo != TwoShot:
		return 1
	case k.Func == coll.Reduce: // the port to the root carries chunks and results
		return 2 * k.ahead()
	case k.Func.Reduces() && k.Algo.direct():
		return k.ahead() + 1
	case k.Algo.direct():
		return max(1, k.Ahead) + 1
	}
	return 2
}

// builder collects the steps of one channel of one rank.
type builder struct {
	Key
	channel int32
	steps   []Step
}

func (b *builder) build() {
	switch {
	case b.N == 1:
		b.alone()
	case b.Algo == Ring:
		b.ring()
	case b.Algo == Tree:
		b.tree()
	case b.Algo == Star:
		b.star()
	default:
		b.direct()
	}
}

// alone is every function on one rank: a copy, which also scales a PreMulSum. A mean of one is not divided.
func (b *builder) alone() {
	b.add(Step{In: []Source{local(b.send(0))}, Dst: b.recv(0), Last: true})
}

func (b *builder) add(s Step) { b.steps = append(b.steps, s) }

// around is the rank d places after this one.
func (b *builder) around(d int) int {
	if b.Order != nil && !b.Algo.direct() {
		return b.Order.around(int(b.channel), b.Rank, d)
	}
	return ((b.Rank+d)%b.N + b.N) % b.N
}

// send and recv are this channel's part of a block of a buffer.
func (b *builder) send(block int) Ref { return b.part(SendBuf, block) }
func (b *builder) recv(block int) Ref { return b.part(RecvBuf, block) }

func (b *builder) part(buf Buffer, block int) Ref {
	return Ref{Buf: buf, Block: int32(block), Part: b.channel, Parts: int32(b.Channels)}
}

// chunk is this channel's part of rank r's chunk of the vector, which is block 0 cut into N chunks.
func (b *builder) chunk(buf Buffer, r int) Ref {
	return Ref{Buf: buf, Part: int32(r*b.Channels) + b.channel, Parts: int32(b.N * b.Channels)}
}

func local(r Ref) Source        { return Source{Local: r} }
func from(k Kind, p int) Source { return Source{Port: PortRef{Used: true, Kind: k, Peer: int32(p)}} }
func to(peer int) PortRef       { return PortRef{Used: true, Kind: Pair, Peer: int32(peer)} }
func toAll() PortRef            { return PortRef{Used: true, Kind: All} }
func one(s ...Source) []Source  { return s }
