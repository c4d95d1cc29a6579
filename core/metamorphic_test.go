package core

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto/porttest"
)

var (
	soak = flag.Duration("soak", 0, "how long to go on with random scripts")
	seed = flag.Uint64("seed", 0, "the script to run, 0: a new one each time")
)

// setting is one way to run a script: what may change how bytes move, and never what they are.
type setting struct {
	transport string
	env       map[string]string
}

func randomSetting(rng *rand.Rand) setting {
	pick := func(values ...string) string { return values[rng.IntN(len(values))] }
	return setting{transport: pick("shm", "tcp"), env: map[string]string{
		"NCCL_ALGO":          pick("", "", "ring", "direct", "oneshot", "^ring", "allreduce:twoshot;broadcast:ring"),
		"HCCL_DETERMINISTIC": pick("", "0", "1"),
		"NCCL_MIN_NCHANNELS": pick("", "1", "2", "5"),
		"NCCL_MAX_NCHANNELS": pick("", "", "1", "3"),
		"HCCL_SHM_SLICE":     pick("", "", "4096", "65536", "1000"),
		"NCCL_BUFFSIZE":      pick("", "", "65536", "1048576"),
		"HCCL_NET_SLOTS":     pick("", "8"),
		"HCCL_EAGER_LIMIT":   pick("", "", "0", "131072"),
	}}
}

func (s setting) apply(t testing.TB) {
	use(t, s.transport)
	for name, value := range s.env {
		testkit.Setenv(t, name, value)
	}
}

// script is a sequence of steps that all ranks take: each step is a group of calls on the communicator or on a part of it.
type script struct {
	seed  uint64
	n     int
	steps []step
}

type step struct {
	ops   []*shape
	ring  int64 // bytes of a message around the ring in the same group, -1: none
	child bool  // on the half of the ranks that this one is in
}

func randomScript(rng *rand.Rand, n, steps int, floats bool) *script {
	s := &script{n: n}
	for range steps {
		st := step{ring: -1, child: rng.IntN(4) == 0}
		for range 1 + rng.IntN(3) {
			st.ops = append(st.ops, randomShape(rng, n, floats))
		}
		if rng.IntN(3) == 0 {
			st.ring = rng.Int64N([]int64{100, 20000, 400000}[rng.IntN(3)])
		}
		s.steps = append(s.steps, st)
	}
	return s
}

func randomShape(rng *rand.Rand, n int, floats bool) *shape {
	o := &shape{fn: collectives[rng.IntN(len(collectives))], typ: porttest.Types[rng.IntN(len(porttest.Types))],
		n: n, count: rng.Uint64N([]uint64{4, 300, 3000, 60000}[rng.IntN(4)]),
		root: rng.IntN(n), seed: rng.Uint64N(1000), inPlace: rng.IntN(2) == 0, floats: floats}
	o.inPlace = o.inPlace && o.fn != coll.AlltoAll && o.fn != coll.AlltoAllV
	if rng.IntN(4) == 0 {
		o.algo, o.channels = []string{"", "ring", "oneshot", "twoshot", "direct"}[rng.IntN(5)], rng.IntN(4)
	}
	if floats {
		o.typ = []coll.DataType{coll.Float32, coll.Float64, coll.Bfloat16}[rng.IntN(3)]
	}
	o.red = reductionFor(o.typ, rng.IntN(len(reductions)))
	return o
}

// sized is the operation on a communicator of n ranks.
func (o *shape) sized(n int) *shape {
	x := *o
	x.n, x.root = n, o.root%n
	return &x
}

// play runs the script on one rank and returns what its receive buffers hold; unless they are floats it holds them against the model.
func (s *script) play(c *Comm) (results [][]byte, err error) {
	half, err := splitOff(c, int32(c.rank%2), 0)
	if err != nil {
		return nil, err
	}
	for k, st := range s.steps {
		on := c
		if st.child {
			on = half
		}
		got, err := st.play(on)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", k, err)
		}
		results = append(results, got...)
	}
	return results, half.Destroy()
}

func (st *step) play(c *Comm) (results [][]byte, err error) {
	var items []Item
	var parts []*part
	for _, o := range st.ops {
		p := o.sized(c.n).part(c.rank)
		parts = append(parts, p)
		items = append(items, Item{Comm: c, Call: &p.call})
	}
	x := newRing(c.rank, c.n, uint64(max(st.ring, 0)))
	if st.ring >= 0 {
		items = append(items, Item{Comm: c, Call: &x.send}, Item{Comm: c, Call: &x.recv})
	}
	if len(items) == 1 {
		err = do(c, items[0].Call)
	} else {
		err = Enqueue(items)
	}
	for _, p := range parts {
		results = append(results, p.mem)
		if err == nil && !p.o.floats {
			err = p.check()
		}
	}
	if err == nil && st.ring >= 0 {
		err = x.check()
	}
	return results, err
}

// run plays the script under a setting.
func (s *script) run(t *testing.T, with setting) (results [][][]byte) {
	t.Helper()
	results = make([][][]byte, s.n)
	t.Run("run", func(t *testing.T) {
		with.apply(t)
		w := newWorld(t, s.n)
		for r, err := range w.each(func(r int) (err error) {
			results[r], err = s.play(w.comms[r])
			return err
		}) {
			if err != nil {
				t.Errorf("-seed %d, %d ranks, %+v, rank %d: %v", s.seed, s.n, with, r, err)
			}
		}
		if t.Failed() {
			w.abort()
			t.FailNow()
		}
		w.destroy()
	})
	return results
}

// scripts calls f with seeds: one that was asked for, else a few, or as many as -soak allows.
func scripts(t *testing.T, few int, f func(seed uint64, rng *rand.Rand) error) {
	if testing.Short() {
		few = (few + 2) / 3
	}
	start := time.Now()
	for k := 0; k < few || time.Since(start) < *soak; k++ {
		s := *seed
		if s == 0 {
			s = rand.Uint64()
		}
		if err := f(s, rand.New(rand.NewPCG(s, 1))); err != nil {
			t.Fatalf("-seed %d: %v", s, err)
		}
		if t.Failed() || *seed != 0 {
			return
		}
	}
}

// Random calls under random settings give the bytes of the model.
func TestRandomCalls(t *testing.T) {
	scripts(t, 12, func(seed uint64, rng *rand.Rand) error {
		s := randomScript(rng, 1+rng.IntN(5), 12, false)
		s.seed = seed
		s.run(t, randomSetting(rng))
		return nil
	})
}

// With HCCL_DETERMINISTIC=1, random floats give equal bits under all other settings.
func TestRandomFloatsAreReproducible(t *testing.T) {
	scripts(t, 3, func(seed uint64, rng *rand.Rand) error {
		s := randomScript(rng, 2+rng.IntN(4), 6, true)
		s.seed = seed
		var first [][][]byte
		var was setting
		for k := range 3 {
			with := randomSetting(rng)
			with.env["HCCL_DETERMINISTIC"] = "1"
			with.env["NCCL_ALGO"] = []string{"", "direct", "oneshot", "twoshot", "^ring"}[rng.IntN(5)]
			for _, st := range s.steps { // the way of each call changes too, but for the ring, which is refused
				for _, o := range st.ops {
					o.algo, o.channels = []string{"", "oneshot", "twoshot", "direct"}[rng.IntN(4)], rng.IntN(3)
				}
			}
			results := s.run(t, with)
			if k == 0 {
				first, was = results, with
			}
			if err := sameBits(first, results); err != nil {
				return fmt.Errorf("%+v and %+v: %w", was, with, err)
			}
		}
		return nil
	})
}

func sameBits(a, b [][][]byte) error {
	for r := range a {
		if len(a[r]) != len(b[r]) {
			return errors.New("rank " + strconv.Itoa(r) + " has another number of results")
		}
		for k := range a[r] {
			if !bytes.Equal(a[r][k], b[r][k]) {
				return fmt.Errorf("rank %d differs in result %d", r, k)
			}
		}
	}
	return nil
}
