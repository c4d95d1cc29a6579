package shm

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/proto"
)

// bellLimit is how long a sleeper waits before the ring is taken for lost. Nothing else bounds these tests.
const bellLimit = 20 * time.Second

// await waits for ready as the core does: a few looks, then a sleep on a bell.
func await(s *Segment, looks int, ready func() bool) error {
	for range looks {
		if ready() {
			return nil
		}
	}
	b := TakeBell()
	defer b.Drop()
	for {
		b.Prepare()
		if !b.Arm(s) {
			return fmt.Errorf("rank %d: no room for a bell", s.self)
		}
		ok := ready()
		rang := ok || b.Sleep(bellLimit)
		b.Disarm(s)
		if ok {
			return nil
		}
		if !rang {
			return fmt.Errorf("rank %d: a ring was lost", s.self)
		}
	}
}

// volley passes slices to and fro, rank 0 first. Now and then a rank dawdles, so that the other falls asleep.
func volley(s *Segment, turns int, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, uint64(s.self)))
	o, err := s.ports.Out(proto.Pair, 0, 1-s.self)
	if err != nil {
		return err
	}
	i, err := s.ports.In(proto.Pair, 0, 1-s.self)
	if err != nil {
		return err
	}
	o.Begin(proto.Tag{}, 1)
	i.Begin(proto.Tag{})
	for k := range turns {
		if s.self == 1 || k > 0 {
			var fault error
			err = await(s, rng.IntN(64), func() bool {
				p, _, err := i.Peek()
				fault = err
				return p != 0 || err != nil
			})
			if err != nil || fault != nil {
				return fmt.Errorf("turn %d: %v, %v", k, err, fault)
			}
			i.Release()
		}
		for range rng.IntN(200) {
			Processors()
		}
		if p, err := o.Reserve(8, 0); p == 0 {
			return fmt.Errorf("turn %d: no room: %v", k, err)
		}
		o.Commit(8)
	}
	return nil
}

// No ring is lost between a look and the sleep, whatever the timing.
func TestVolley(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	turns := 100000
	if testing.Short() {
		turns = 10000
	}
	var wg sync.WaitGroup
	for _, s := range segs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.LockOSThread()
			if err := volley(s, turns, 5); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
}

// pongRole is rank 1 of a segment made by the test.
func pongRole(in *bufio.Scanner, args []string) error {
	l, err := Open()
	if err != nil {
		return err
	}
	key := parseKey(args[1])
	l.OfferArena(key)
	name := l.Name()
	fmt.Println(name.hex())
	p, err := l.Connect(parseKey(args[0]), key, soon(), nil)
	if err != nil {
		return err
	}
	fd, err := l.Fetch(parseKey(args[0]), parseKey(args[2]), soon(), nil)
	if err != nil {
		return err
	}
	s, err := Map(fd, 2, 1)
	if err == nil {
		err = s.Join(1, []int{0, 1}, []*Peer{p, l.self})
	}
	if err != nil {
		return err
	}
	fmt.Println("joined")
	turns, _ := strconv.Atoi(args[3])
	if err := volley(s, turns, 6); err != nil {
		return err
	}
	s.SetState(Left)
	s.Raise(0, WhyLeft)
	fmt.Println("done", unix.Getpid())
	in.Scan()
	return nil
}

// The same between two processes; then one is killed while the other sleeps.
func TestVolleyBetweenProcesses(t *testing.T) {
	const turns = 30000
	l := open(t)
	key, segKey := NewKey(), NewKey()
	l.OfferArena(key)
	defer l.Withdraw(key)
	name := l.Name()
	c := start(t, "pong", name.hex(), key.hex(), segKey.hex(), turns)
	p, err := l.Connect(parseKey(c.line()), key, soon(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Create(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Offer(segKey, s.FD())
	if err := s.Join(0, []int{0, 1}, []*Peer{l.self, p}); err != nil {
		t.Fatal(err)
	}
	unwatch := p.Watch(func() { s.RaiseAll(WhyDeath) })
	if got := c.line(); got != "joined" {
		t.Fatal(got)
	}
	l.Withdraw(segKey)
	s.CloseFD()
	if err := volley(s, turns, 7); err != nil {
		t.Fatal(err)
	}
	c.line()
	if err := await(s, 0, func() bool { return s.Why()&WhyLeft != 0 }); err != nil {
		t.Error(err)
	}
	if s.State(1) != Left || s.State(0) != Live || s.Count(Live) != 2 || s.Count(Left) != 1 {
		t.Error("states", s.State(0), s.State(1))
	}
	c.kill()
	if err := await(s, 0, func() bool { return s.Why()&WhyDeath != 0 }); err != nil {
		t.Error(err)
	}
	unwatch()
	s.SetState(Left)
	s.Close()
}

// A rank has room for two sleepers; a third is told.
func TestArmThree(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	a, b, c := TakeBell(), TakeBell(), TakeBell()
	for _, x := range []*Bell{a, b, c} {
		x.Prepare()
	}
	if !a.Arm(segs[0]) || !b.Arm(segs[0]) || c.Arm(segs[0]) {
		t.Error("not just two bells found room")
	}
	c.Disarm(segs[0])
	segs[1].Ring(0)
	if !a.Sleep(0) || !b.Sleep(0) || c.Sleep(0) {
		t.Error("the ring did not reach just the two")
	}
	a.Disarm(segs[0])
	if !c.Arm(segs[0]) {
		t.Error("no room after one has gone")
	}
	b.Disarm(segs[0])
	c.Disarm(segs[0])
	if v := word64(segs[0].block(0) + blockBells).Load(); v != 0 {
		t.Errorf("%x is left of the bells", v)
	}
	for _, x := range []*Bell{a, b, c} {
		x.Drop()
	}
}

// A rank's word of bells may hold anything.
func FuzzRing(f *testing.F) {
	f.Add(uint64(0))
	f.Add(^uint64(0))
	f.Add(uint64(maxBells) | uint64(maxBells+1)<<32)
	segs := host(f, 2, 1)
	f.Fuzz(func(t *testing.T, v uint64) {
		word64(segs[0].block(1) + blockBells).Store(v)
		segs[0].Ring(1)
		segs[0].Raise(1, WhyFault)
	})
}

// A bell without an arena works inside the process.
func TestOwnBell(t *testing.T) {
	var f belfry
	f.mu.Lock()
	b := f.takeOwn()
	f.mu.Unlock()
	b.Prepare()
	if b.Sleep(time.Millisecond) {
		t.Error("it rang by itself")
	}
	b.Prepare()
	go b.Ring()
	if !b.Sleep(bellLimit) {
		t.Error("a ring was lost")
	}
	if segs := host(t, 2, 1); b.Arm(segs[0]) {
		t.Error("it was armed for other processes")
	} else {
		leave(segs)
	}
}
