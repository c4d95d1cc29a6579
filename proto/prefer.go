package proto

import (
	"math"
	"math/bits"

	"hccl.dev/hccl/internal/coll"
)

// What the free choice prefers, by a model of what an operation costs between hosts.

// Between hosts, as measured over TCP on a virtual machine: a step to another host and one within, what each message costs the process
// that sends or takes it, and what a host's link moves.
const (
	crossStep  = 30e-6 // s
	innerStep  = 3e-6
	perMessage = 2e-6
	crossRate  = 1.2e9 // bytes/s each way
	innerRate  = 2.4e9 // of a level of the tree, there and back
)

// order is the preference of the free choice for an operation of this size.
func order(s *Setting, op *Op) [NumAlgos]Algo {
	size := shared(op) * op.Type.Size()
	list := [NumAlgos]Algo{TwoShot, OneShot, Ring, Tree, Star}
	if op.N <= 2 && (s.Hosts > 1 || size <= oneShotPair) || oneShot(float64(op.N), float64(size)) {
		list[0], list[1] = OneShot, TwoShot
	}
	if s.Apart || s.Hosts > 1 {
		across := newAcross(s, op, float64(size))
		across.sort(&list)
	}
	return list
}

// oneShot reports whether n vectors are short enough for all to read all.
func oneShot(n, size float64) bool { return n*size <= oneShotRead }

// across is what decides between hosts: their ranks, and bytes of a rank's vector.
type across struct {
	fn   coll.Func
	n, h float64 // ranks and hosts
	m    float64 // ranks of a host
	size float64
}

func newAcross(s *Setting, op *Op, size float64) across {
	a := across{fn: op.Func, n: float64(op.N), h: float64(s.Hosts), size: size}
	if s.Apart {
		a.h = a.n
	}
	a.m = math.Ceil(a.n / a.h)
	return a
}

// sort puts the fastest first, and leaves those in their order that are as fast.
func (a *across) sort(list *[NumAlgos]Algo) {
	inf := math.Inf(1)
	takes := [NumAlgos]float64{OneShot: a.direct(), TwoShot: a.direct(), Ring: a.ring(), Tree: inf, Star: inf}
	if a.fn == coll.AllReduce {
		takes[Tree], takes[Star] = a.tree(), a.star()
	}
	for i := range list {
		for k := i; k > 0 && takes[list[k]] < takes[list[k-1]]; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

// direct is how long the direct forms take. In them each rank of a host exchanges its part with each rank elsewhere, all over one link.
func (a *across) direct() float64 {
	shots, messages, bytes := 1.0, a.m*(a.n-a.m), a.m*(a.n-a.m)*a.size
	switch {
	case a.fn == coll.Broadcast:
		messages, bytes = a.n-a.m, (a.n-a.m)*a.size
	case (a.fn == coll.AllReduce || a.fn == coll.Reduce) && !oneShot(a.n, a.size): // of chunks, there and back
		shots, messages, bytes = 2, 2*messages, 2*bytes/a.n
	}
	return shots*crossStep + messages*perMessage + bytes/crossRate
}

// ring is how long the ring takes. It enters and leaves a host once, in many more steps. With one rank on each host it moves the same
// bytes as the direct forms, and never pays.
func (a *across) ring() float64 {
	if a.m <= 1 {
		return math.Inf(1)
	}
	shots, bytes := 1.0, (a.n-1)*a.size
	switch a.fn {
	case coll.AllReduce, coll.Reduce:
		shots, bytes = 2, 2*bytes/a.n
	case coll.Broadcast:
		bytes = a.size
	}
	return shots*(a.h*(crossStep+perMessage)+(a.n-a.h)*innerStep) + bytes/crossRate
}

// tree is how long the tree takes. It enters and leaves a host about once each way, with the whole vector, and again at each level; so does
// memory within a host.
func (a *across) tree() float64 { return 2 * a.down() }

// down is half of it, one way.
func (a *across) down() float64 {
	hops, levels := float64(bits.Len(uint(a.h)-1)), float64(bits.Len(uint(a.m)-1))
	return hops*(crossStep+perMessage+a.size/crossRate) + levels*(innerStep+a.size/innerRate)
}

// star is how long the star takes. All that is summed comes to one host, and to one rank.
func (a *across) star() float64 {
	return crossStep + (a.n-a.m)*(perMessage+a.size/crossRate) + a.n*a.size/innerRate + a.down()
}
