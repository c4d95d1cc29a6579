package proto

import (
	"fmt"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

func algos(t *testing.T, text string) Algos {
	t.Helper()
	a, err := ParseAlgos(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return a
}

func TestChoose(t *testing.T) {
	small := Op{Func: coll.AllReduce, Type: coll.Float32, N: 4, Count: 100}
	large := Op{Func: coll.AllReduce, Type: coll.Float32, N: 4, Count: 1 << 20}
	mean := Op{Func: coll.AllReduce, Type: coll.Int32, Red: coll.Avg, N: 4, Count: 1 << 20}
	gather := Op{Func: coll.AllGather, Type: coll.Float32, N: 4, Count: 1 << 20}
	pairs := Op{Func: coll.AlltoAll, Type: coll.Float32, N: 4, Count: 1 << 20}
	for _, c := range []struct {
		name    string
		set     Setting
		list    string
		op      Op
		algo    Algo
		ignored bool
		fails   string // part of the error
	}{
		{"small", Setting{}, "", small, OneShot, false, ""},
		{"large", Setting{}, "", large, TwoShot, false, ""},
		{"no sum", Setting{}, "", gather, OneShot, false, ""},
		{"ring", Setting{Forced: true}, "ring", large, Ring, false, ""},
		{"upper case, with one we lack", Setting{Forced: true}, "RING,NVLS", large, Ring, false, ""},
		{"tree", Setting{Forced: true}, "tree", large, Tree, false, ""},
		{"direct, small", Setting{Forced: true}, "direct", small, OneShot, false, ""},
		{"direct, large", Setting{Forced: true}, "direct", large, TwoShot, false, ""},
		{"oneshot, large", Setting{Forced: true}, "oneshot", large, OneShot, false, ""},
		{"twoshot, small", Setting{Forced: true}, "twoshot", small, TwoShot, false, ""},
		{"all but tree", Setting{Forced: true}, "^tree", large, TwoShot, false, ""},
		{"all but direct", Setting{Forced: true}, "^direct,tree,star", large, Ring, false, ""},
		{"star", Setting{Forced: true, Reproducible: true}, "star", large, Star, false, ""},
		{"star for a mean of integers", Setting{Forced: true}, "star", mean, Star, false, ""},
		{"star for an all-gather, forced", Setting{Forced: true}, "star", gather, 0, false, "no star form"},
		{"one we lack, forced", Setting{Forced: true}, "nvls", large, 0, false, "ring, tree, star, direct, oneshot and twoshot"},
		{"one we lack, not forced", Setting{}, "nvls", large, TwoShot, true, ""},
		{"tree for an all-gather, forced", Setting{Forced: true}, "tree", gather, 0, false, "no tree form"},
		{"tree for a mean of integers, forced", Setting{Forced: true}, "tree", mean, 0, false, "tree cannot do the mean"},
		{"ring for a mean of integers, forced", Setting{Forced: true}, "ring", mean, 0, false, "overflow"},
		{"ring for a mean of integers, not forced", Setting{}, "ring", mean, TwoShot, true, ""},
		{"ring for all-to-all, forced", Setting{Forced: true}, "ring", pairs, 0, false, "no ring form"},
		{"ring in reproducible mode, forced", Setting{Forced: true, Reproducible: true}, "ring", large, 0, false, "reproducible"},
		{"ring in reproducible mode, not forced", Setting{Reproducible: true}, "ring", large, TwoShot, true, ""},
		{"ring without a sum in reproducible mode", Setting{Forced: true, Reproducible: true}, "ring", gather, Ring, false, ""},
		{"for this function", Setting{Forced: true}, "allreduce:ring;broadcast:direct", large, Ring, false, ""},
		{"for another function", Setting{Forced: true}, "broadcast:ring", large, TwoShot, false, ""},
	} {
		c.set.Algos = algos(t, c.list)
		got, err := Choose(&c.set, &c.op)
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, wanted an error with %q", c.name, err, c.fails)
		case c.fails == "" && (err != nil || got.Algo != c.algo || got.Ignored != c.ignored):
			t.Errorf("%s: %+v, %v, wanted %s, ignored %v", c.name, got, err, c.algo, c.ignored)
		}
	}
}

// TestChooseAcrossHosts: large operations of hosts with several ranks go around the ring, which crosses each link once.
func TestChooseAcrossHosts(t *testing.T) {
	for _, c := range []struct {
		fn       coll.Func
		n, hosts int
		bytes    uint64
		want     Algo
	}{
		{coll.AllReduce, 16, 1, 64 << 20, TwoShot},
		{coll.AllReduce, 16, 2, 64 << 20, Ring},
		{coll.AllReduce, 8, 2, 8, OneShot},
		{coll.AllReduce, 16, 2, 8, Tree},
		{coll.AllReduce, 16, 2, 8 << 10, Tree},
		{coll.AllReduce, 8, 2, 64 << 10, Ring},
		{coll.AllReduce, 16, 4, 64 << 10, Ring},
		{coll.AllReduce, 1024, 4, 8, Tree}, // one shot would be 196,608 messages from each host
		{coll.AllReduce, 1024, 4, 64 << 20, Ring},
		{coll.AllReduce, 8, 8, 8, OneShot},
		{coll.AllReduce, 1024, 1024, 8, Tree},
		{coll.AllReduce, 1024, 1, 8, OneShot},
		{coll.AllGather, 1024, 4, 8, Ring},
		{coll.AllGather, 8, 2, 8, OneShot},
		{coll.AllReduce, 16, 16, 64 << 20, TwoShot}, // one rank a host: the same bytes in two steps
		{coll.AllReduce, 2, 1, 64 << 20, TwoShot},
		{coll.AllReduce, 2, 2, 64 << 20, OneShot}, // the same bytes in one step
		{coll.Broadcast, 2, 2, 64 << 20, OneShot},
		{coll.AllGather, 16, 2, 4 << 20, Ring},
		{coll.Broadcast, 16, 2, 16 << 20, Ring},
		{coll.AlltoAll, 16, 2, 16 << 20, OneShot}, // there is no other
	} {
		op := Op{Func: c.fn, Type: coll.Float32, N: c.n, Count: c.bytes / 4}
		got, err := Choose(&Setting{Hosts: c.hosts}, &op)
		if err != nil || got.Algo != c.want {
			t.Errorf("%v of %d bytes, %d ranks on %d hosts: %v, %v; want %v", c.fn, c.bytes, c.n, c.hosts, got.Algo, err, c.want)
		}
	}
	op := Op{Func: coll.AllReduce, Type: coll.Float32, N: 16, Count: 16 << 20}
	if got, _ := Choose(&Setting{Hosts: 2, Reproducible: true}, &op); got.Algo != TwoShot {
		t.Errorf("reproducible: %v", got.Algo)
	}
	for _, c := range []struct {
		n, hosts int
		bytes    uint64
		want     Algo
	}{
		{1024, 4, 8, Star}, {64, 4, 8, Star}, {1024, 4, 1 << 20, TwoShot}, {16, 16, 8, OneShot}, {4, 2, 8, OneShot},
	} {
		op = Op{Func: coll.AllReduce, Type: coll.Float32, N: c.n, Count: c.bytes / 4}
		if got, _ := Choose(&Setting{Hosts: c.hosts, Reproducible: true}, &op); got.Algo != c.want {
			t.Errorf("reproducible, %d bytes, %d ranks on %d hosts: %v, wanted %v", c.bytes, c.n, c.hosts, got.Algo, c.want)
		}
	}
	op = Op{Func: coll.AllReduce, Type: coll.Float32, N: 1024, Count: 2}
	if got, _ := Choose(&Setting{Hosts: 1, Apart: true}, &op); got.Algo != Tree {
		t.Errorf("one host without shared memory: %v", got.Algo)
	}
}

// Across a network one channel is far ahead, and large operations take more; rings and trees take more from small sizes on.
func TestChooseAcross(t *testing.T) {
	for _, c := range []struct {
		fn             coll.Func
		algo           string
		bytes          uint64
		ahead          int // of the setting
		channels, goes int
	}{
		{coll.AllReduce, "direct", 1 << 20, 8, 1, 8}, {coll.AllReduce, "direct", 16 << 20, 8, 2, 8},
		{coll.AllReduce, "direct", 1 << 30, 8, 4, 8}, {coll.AllReduce, "direct", 1 << 30, 0, 8, 0},
		{coll.AllReduce, "direct", 256 << 10, 0, 2, 0},
		{coll.AllGather, "direct", 4 << 20, 4, 1, 4}, {coll.AlltoAllV, "", 100, 8, 4, 8},
		{coll.AllReduce, "ring", 512 << 10, 8, 4, 0}, {coll.AllReduce, "tree", 1 << 20, 8, 8, 0},
	} {
		s := Setting{Hosts: 2, Wide: true, Ahead: c.ahead, Algos: algos(t, c.algo)}
		got, err := Choose(&s, &Op{Func: c.fn, Type: coll.Float32, N: 4, Count: c.bytes / 4})
		if err != nil || got.Channels != c.channels || got.Ahead != c.goes {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// TestChooseIsAlwaysBuildable: whatever is chosen can be built and fits, and its slice is usable.
func TestChooseIsAlwaysBuildable(t *testing.T) {
	for f := coll.Func(0); f < coll.NumFuncs; f++ {
		if f == coll.Send || f == coll.Recv || f == coll.Barrier { // a barrier is chosen as an all-reduce
			continue
		}
		for _, n := range []int{1, 2, 3, 64, 100} {
			for _, count := range []uint64{0, 1, 1000, 1 << 14, 1 << 20, 1 << 33} {
				for _, s := range []Setting{{}, {Reproducible: true}, {MinChannels: 3}, {MinChannels: 99}, {MinChannels: 4, MaxChannels: 2},
					{Rings: 5}, {Hosts: 2, Wide: true, Ahead: 8}} {
					op := Op{Func: f, Type: coll.Float32, N: n, Count: count, RecvCounts: []uint64{count}}
					c, err := Choose(&s, &op)
					if err != nil {
						t.Fatalf("%s, %d ranks, %d elements: %v", f, n, count, err)
					}
					if c.Slice < 4 || c.Channels < 1 || s.MaxChannels > 0 && c.Channels > s.MaxChannels {
						t.Errorf("%s, %d ranks, %d elements, %+v: %+v", f, n, count, s, c)
					}
					if _, err := Build(Key{Func: f, Algo: c.Algo, N: n, Rank: n - 1, Channels: c.Channels, Ahead: c.Ahead}); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	if _, err := Choose(&Setting{}, &Op{Func: coll.Send, N: 2}); err == nil {
		t.Error("a message was given an algorithm")
	}
}

func TestChooseAllocatesNothing(t *testing.T) {
	s := Setting{Algos: algos(t, "direct")}
	op := Op{Func: coll.AllReduce, Type: coll.Float32, N: 4, Count: 1 << 20}
	if n := testing.AllocsPerRun(100, func() { Choose(&s, &op) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestParseAlgos(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		" ; ":                 "",
		"ring":                "ring",
		"RING , Direct":       "ring, oneshot, twoshot",
		"^ring":               "oneshot, twoshot, tree, star",
		"^Tree":               "ring, oneshot, twoshot, star",
		"auto":                "ring, oneshot, twoshot, tree, star, others that NCCL has",
		"NVLS,collnetdirect":  "others that NCCL has",
		"ring;allreduce:tree": "tree",
	} {
		a := algos(t, text)
		if got := a.set(coll.AllReduce); got.String() != want {
			t.Errorf("%q means %q, wanted %q", text, got, want)
		}
	}
	for _, text := range []string{"rign", "ring,", "^", "^ring,direct,tree,star", "^ring,direct,tree,star,nvls", "allreduce:", "sum:ring", ":",
		"all reduce:ring",
		strings.Repeat("ring,", 2000)} {
		if a, err := ParseAlgos(text); err == nil {
			t.Errorf("%.40q was taken as %v", text, a)
		}
	}
}

// C101: what a list cannot do is known when it is read.
func TestUnfit(t *testing.T) {
	for _, c := range []struct {
		list         string
		reproducible bool
		want         string
	}{
		{"", false, "[]"}, {"", true, "[]"}, {"ring", false, "[]"}, {"^tree", false, "[]"}, {"^ring", true, "[]"}, {"tree,ring", false, "[]"},
		{"ring", true, "[all-reduce reduce reduce-scatter]"},
		{"tree", false, "[reduce broadcast all-gather reduce-scatter]"},
		{"nvls", false, "[all-reduce reduce broadcast all-gather reduce-scatter]"},
		{"twoshot", false, "[broadcast all-gather reduce-scatter]"},
		{"allreduce:nvls;broadcast:ring", false, "[all-reduce]"},
		{"gather:ring;scatter:direct;alltoall:twoshot", false, "[all-to-all gather]"},
	} {
		s := Setting{Algos: algos(t, c.list), Reproducible: c.reproducible}
		if got := fmt.Sprint(s.Unfit()); got != c.want {
			t.Errorf("%q, reproducible %v: %s, want %s", c.list, c.reproducible, got, c.want)
		}
	}
}

// FuzzParseAlgos: no text panics, and what is taken leaves every function either open or with an algorithm.
func FuzzParseAlgos(f *testing.F) {
	for _, s := range []string{"", "ring,tree", "^Tree", "allreduce:tree;broadcast:ring", "AUTO", "^", ";;:,", "direct;reduce:^ring"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAlgos(text)
		if err != nil {
			if a != (Algos{}) {
				t.Errorf("%q: an error and a value", text)
			}
			return
		}
		op := Op{Func: coll.AllReduce, Type: coll.Float32, N: 4, Count: 1 << 20}
		if _, err := Choose(&Setting{Algos: a}, &op); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// Rings in several orders take a channel for each, as far as the settings allow and chunks are worth it; other algorithms do not care.
func TestChannelsOfRings(t *testing.T) {
	const large = 1 << 20
	for _, c := range []struct{ count, rings, least, most, ring, other int }{
		{large, 0, 0, 0, 1, 1}, {large, 1, 0, 0, 1, 1}, {large, 3, 0, 0, 3, 1}, {large, 3, 0, 2, 2, 1}, {large, 3, 4, 0, 4, 4},
		{large, 99, 0, 0, 16, 1}, {2 * sliceMin, 3, 0, 0, 2, 1}, {1, 3, 0, 0, 1, 1}, {1, 3, 4, 0, 4, 4}, {1, 3, 0, 2, 1, 1},
	} {
		op := Op{Func: coll.AllReduce, Type: coll.Float32, Red: coll.Sum, N: 4, Count: uint64(c.count)} // a chunk has as many bytes
		for algo, want := range map[string]int{"ring": c.ring, "twoshot": c.other} {
			algos, err := ParseAlgos(algo)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Choose(&Setting{Algos: algos, Rings: c.rings, MinChannels: c.least, MaxChannels: c.most}, &op)
			if err != nil || got.Channels != want {
				t.Errorf("%s, %+v: %d channels, %v", algo, c, got.Channels, err)
			}
		}
	}
}
