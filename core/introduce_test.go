package core

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm/fast"
)

// logged turns the log on, into a file, and returns what it says.
func logged(t *testing.T, level string) func() string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	testkit.Setenv(t, "NCCL_DEBUG", level)
	testkit.Setenv(t, "NCCL_DEBUG_FILE", path)
	t.Cleanup(func() { log.Configure(log.LevelWarn, 0, ""); log.Configure(log.LevelNone, 0, "") })
	return func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// At INFO a rank says in a handful of lines how it reaches whom and why, and which algorithm is used, once for each kind.
func TestIntroduction(t *testing.T) {
	for transport, want := range map[string][]string{
		"shm": {"rank 1 of 3 made in", "ms (looking at the host ", ", roll call ",
			", exchange ", ", agreement ", ", rings ", ", ties to rank 0 ", ", shared memory ",
			", the rest ", "its segment has", "rank 1 leaves; its segment",
			"rank 1 uses shared memory to ranks 0, 2, in this process"},
		"tcp": {", connections ", "rank 1 uses TCP to ranks 0, 2, on this host: NCCL_SHM_DISABLE=1 (environment)"},
		"mixed": {"rank 0 uses TCP to rank 1, on another host", "rank 0 uses shared memory to rank 2, in this process",
			"rank 1 uses TCP to ranks 0, 2, on another host"},
	} {
		t.Run(transport, func(t *testing.T) {
			use(t, transport)
			said := logged(t, "INFO")
			w := newWorld(t, 3)
			o := shape{fn: coll.AllReduce, typ: coll.Float32, red: coll.Sum, n: 3, count: 50000, seed: 1}
			for range 3 {
				w.must(w.each(func(r int) error { p := o.part(r); return do(w.comms[r], &p.call) }))
			}
			w.destroy()
			text := said()
			for _, line := range append(want, "all-reduce of 50000 elements of float32 uses ") {
				if !strings.Contains(text, line) {
					t.Errorf("%q is not said in\n%s", line, text)
				}
			}
			if n := strings.Count(text, "[1] HCCL"); n > 5 {
				t.Errorf("rank 1 says %d lines, want a handful:\n%s", n, text)
			}
		})
	}
}

// Each choice of an algorithm and of channels is told once, whatever the size that it is first made for.
func TestEachChoiceIsTold(t *testing.T) {
	said := logged(t, "INFO")
	params.Load()
	c := &Comm{n: 2, plans: map[proto.Key]*planned{}}
	call := &Call{Func: coll.AllReduce, Type: coll.Float32, Count: 7}
	for k, channels := range []int{1, 4, 1, 4, 4} {
		choice := proto.Choice{Channels: channels, Slice: 1 << 10}
		c.tellPlan(call, choice)
		c.plans[proto.Key{Func: call.Func, Algo: choice.Algo, Channels: channels, Root: k}] = nil
	}
	text := said()
	for says, times := range map[string]int{"uses": 2, "on 1 channel, in": 1, "on 4 channels, in": 1} {
		if got := strings.Count(text, says); got != times {
			t.Errorf("%q is said %d times, want %d:\n%s", says, got, times, text)
		}
	}
}

// shut is a handle that knows whether the C path is open.
type shut struct {
	handle
	open atomic.Bool
}

func (h *shut) Ready(rank, n int, hot *fast.Hot) { h.open.Store(hot != nil) }

// NCCL_DEBUG=TRACE with the subject CALL writes each call, also one that C would take: its path stays shut.
func TestTraceOfCalls(t *testing.T) {
	for subject, calls := range map[string]int{"CALL": 3, "INIT": 0} {
		said := logged(t, "TRACE")
		testkit.Setenv(t, "NCCL_DEBUG_SUBSYS", subject)
		id := ids.ID()
		w := &world{t: t, comms: make([]*Comm, 2)}
		handles := make([]shut, 2)
		w.must(w.each(func(r int) (err error) {
			s := spec(id, 2, r, true)
			s.Handle = &handles[r]
			w.comms[r], err = initRank(s)
			return err
		}))
		o := shape{fn: coll.AllReduce, typ: coll.Float32, red: coll.Sum, n: 2, count: 2, seed: 1}
		for range 3 {
			w.must(w.each(func(r int) error { p := o.part(r); return do(w.comms[r], &p.call) }))
		}
		open := handles[0].open.Load()
		w.destroy()
		if got := strings.Count(said(), "[1] HCCL TRACE communicator test: all-reduce of 2 elements of float32, sum, "); got != calls {
			t.Errorf("%s: %d calls are traced, want %d, in\n%s", subject, got, calls, said())
		}
		if open != (calls == 0) {
			t.Errorf("%s: the C path is open: %v", subject, open)
		}
	}
}

func TestWhyNothingBetter(t *testing.T) {
	disabled := []wire.Setting{{Name: shmDisable, Value: "1"}}
	for _, c := range []struct {
		name     string
		me, peer wire.Peer
		agreed   agreement
		want     string
	}{
		{"host", wire.Peer{BootID: "a"}, wire.Peer{BootID: "b"}, agreement{}, "TCP @, on another host"},
		{"own", wire.Peer{}, wire.Peer{CanShare: true}, agreement{}, "not possible in this process"},
		{"set there", wire.Peer{CanShare: true}, wire.Peer{Settings: disabled}, agreement{}, "NCCL_SHM_DISABLE=1 there"},
		{"there", wire.Peer{CanShare: true}, wire.Peer{}, agreement{}, "not possible there"},
		{"namespace", wire.Peer{CanShare: true}, wire.Peer{CanShare: true, NetNS: 7}, agreement{share: true}, "another network namespace"},
		{"failed", wire.Peer{CanShare: true}, wire.Peer{CanShare: true}, agreement{share: true}, "mapping the memory failed"},
	} {
		comm := &Comm{net: new(tcp.Fabric), settings: new(params.Values), peers: []wire.Peer{c.me, c.peer}, agreed: c.agreed}
		if got := comm.why(1); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestListOfRanks(t *testing.T) {
	for want, ranks := range map[string][]int{"rank 4": {4}, "ranks 0-2, 5": {0, 1, 2, 5}, "ranks 1, 3, 5": {1, 3, 5}, "ranks 8-9": {8, 9}} {
		if got := list(ranks); got != want {
			t.Errorf("%v: %q, want %q", ranks, got, want)
		}
	}
}

// Each setting that must be alike is compared, by its name; one rank warns, the first that can.
func TestDifferingSettings(t *testing.T) {
	said := logged(t, "WARN")
	at := func(m map[string]string) wire.Peer {
		testkit.Setenv(t, "NCCL_DEBUG", "")
		for name, value := range m {
			testkit.Setenv(t, name, value)
		}
		p := wire.Peer{CanShare: m["NCCL_SHM_DISABLE"] == "", Settings: shared(params.Load())}
		for name := range m {
			testkit.Setenv(t, name, "")
		}
		return p
	}
	peers := []wire.Peer{at(nil), at(map[string]string{"NCCL_DEBUG": "WARN"}),
		at(map[string]string{"NCCL_ALGO": "oneshot", "NCCL_BUFFSIZE": "65536", "NCCL_SHM_DISABLE": "1", "NCCL_DEBUG": "INFO"}),
		at(map[string]string{"NCCL_ALGO": "ring", "HCCL_DETERMINISTIC": "1", "NCCL_MAX_CTAS": "1"})}
	slices.Reverse(peers[3].Settings)
	testkit.Setenv(t, "NCCL_DEBUG", "WARN")
	params.Load()
	for r := range peers {
		if a := agree(r, peers); a.share || a.setting.Reproducible || a.setting.MaxChannels != 0 {
			t.Errorf("rank %d agrees to %+v", r, a)
		}
	}
	text := said()
	for _, want := range []string{`NCCL_ALGO is "" on rank 0 and "oneshot" on rank 2, "ring" on rank 3: rank 0's value`,
		`HCCL_DETERMINISTIC is "0" on rank 0 and "1" on rank 3`, `NCCL_MAX_NCHANNELS is "0" on rank 0 and "1" on rank 3`,
		`NCCL_BUFFSIZE is "4194304" on rank 0 and "65536" on rank 2`,
		`NCCL_SHM_DISABLE is "0" on rank 0 and "1" on rank 2: no rank uses shared`} {
		if n := strings.Count(text, "[1] HCCL WARN "+want); n != 1 {
			t.Errorf("rank 1 says %d times, want once, %q in\n%s", n, want, text)
		}
	}
	if n := strings.Count(text, "HCCL WARN"); n != 5 {
		t.Errorf("%d warnings, want 5:\n%s", n, text)
	}
}

// A list of algorithms that cannot be read is reported with its place, and counts as not set.
func TestBadAlgo(t *testing.T) {
	said := logged(t, "WARN")
	testkit.Setenv(t, "NCCL_ALGO", "Rign")
	if got := value(shared(params.Load()), "NCCL_ALGO"); got != "" {
		t.Errorf("%q counts", got)
	}
	if text := said(); !strings.Contains(text, "NCCL_ALGO=Rign (environment) is not used") || !strings.Contains(text, "ring") {
		t.Error(text)
	}
}
