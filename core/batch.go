package core

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/shm"
)

// batch is what one call or one group asks of this thread: turns of one or more communicators, which advance together.
//
// A waiter first spins, then yields the processor, then sleeps on its bell. More ranks than processors is normal, so where ranks
// outnumber them it hardly spins. Each stage's count was measured: 4 ranks on 2 processors take 3 us for 8 bytes so, with
// spinning alone a thousand times that.
type batch struct {
	comms []*Comm
	limit time.Duration // of a standstill of this batch, 0: each communicator's own, NoLimit: none
	until time.Time     // when what its calls allow themselves is over; zero: never
	began time.Time     // when until was set
	aside bool          // it runs beside the program's own threads, which may need all processors: it spins little
	pump  bool          // it moves requests, and has no calls of its own
	bell  *shm.Bell     // while it naps
	since time.Time     // when the present standstill was first noticed; zero while things move
	check time.Time     // when to look closer next

	failed []failure // how the turns of those that failed ended
}

// failure is a communicator's error in a batch.
type failure struct {
	comm *Comm
	err  error
}

const (
	maxSpinners  = 12 // threads that may spin in Go at once; further ones sleep at once, so that those with work find a processor
	spins        = 3000
	crowdedSpins = 20
	asideSpins   = 1000 // of a thread beside the program's own: it waits for a peer that moves data now, but for no other
	yields       = 300
	briefLooks   = 20 // of a thread beside the program's own, where what it waits for has come slowly of late,
	slowMoves    = 8  // as so many steps ago at most it had to sleep for it
	napTime      = 20 * time.Millisecond
	graceTime    = 50 * time.Millisecond  // for what a rank gave before it went
	compareTime  = 200 * time.Millisecond // until a waiter compares its call with those of the others
)

// spinners counts the threads inside drive.
var spinners atomic.Int32

// drive advances all turns until each is done or has failed, and returns the first failure.
func (b *batch) drive() error {
	b.failed = b.failed[:0]
	patience, yielding := spins, yields
	if spinners.Add(1) > maxSpinners {
		patience, yielding = 1, 0
	}
	defer spinners.Add(-1)
	if b.aside {
		patience = min(patience, asideSpins)
		if processorsTaken() {
			yielding = 0
		}
	}
	for _, c := range b.comms {
		if c.crowded {
			patience = min(patience, crowdedSpins)
		}
		if c.net != nil {
			c.net.Take()
		}
	}
	slow := 0
	for idle := 0; ; {
		moved, done := b.advance()
		switch {
		case done:
			return b.end()
		case moved:
			idle = 0
			if slow > 0 { // a look costs a system call where a network is between, and the program computes beside us
				idle = max(0, patience+yielding-briefLooks)
				slow--
			}
			b.since = time.Time{}
		case idle < patience:
			idle++
		case idle < patience+yielding:
			if idle == patience && !b.aside {
				b.spread()
			}
			idle++
			if !b.aside {
				giveWay()
			} else if !giveWayAside() {
				yielding = 0
			}
		case b.nap():
			idle = patience
			if b.aside {
				slow = slowMoves
			}
		}
	}
}

// advance goes once round the communicators.
func (b *batch) advance() (moved, done bool) {
	done = true
	for _, c := range b.comms {
		m, d := c.advance()
		moved = moved || m
		done = done && d
	}
	return moved, done
}

// end gives back what the turns borrowed and returns the first error.
func (b *batch) end() (err error) {
	b.since = time.Time{}
	for _, c := range b.comms {
		b.settle(c)
	}
	if len(b.failed) > 0 {
		err = b.failed[0].err
	}
	return err
}

// settle gives back what a communicator's turn borrowed and notes how it ended.
func (b *batch) settle(c *Comm) {
	if c.net != nil && c.open.Load() > 0 {
		c.net.Give() // the pump may sleep until the background has something for its requests
	} else if c.net != nil {
		c.net.Rest()
	}
	if p, ok := c.ports.(interface{ Rest() }); ok && (c.idle() || c.turn.err != nil) {
		p.Rest()
	}
	for _, m := range c.turn.live {
		c.msgs.release(m)
	}
	if e := cmp.Or(c.turn.err, c.turn.late); e != nil {
		b.failed = append(b.failed, failure{c, e})
	}
	c.turn.clear()
}

// part lets go of communicators that are being aborted, whose end must not wait for the others of the group.
func (b *batch) part() {
	for k := len(b.comms) - 1; k >= 0 && len(b.comms) > 1; k-- {
		if c := b.comms[k]; c.turn.err != nil && c.closing.Load() {
			b.settle(c)
			b.comms = slices.Delete(b.comms, k, k+1)
			c.hot.Unlock()
			c.leave()
		}
	}
}

// nap sleeps until something may have changed, and reports whether it was rung.
func (b *batch) nap() bool {
	if f := b.sockets(); f != nil {
		if rang, slept := f.Sleep(b.pause()); slept {
			b.part()
			b.ponder()
			return rang
		}
	}
	pause := b.arm()
	moved, done := b.advance() // whatever came before the bell was armed
	rang := moved || done
	if !rang {
		rang = b.bell.Sleep(pause)
	}
	b.disarm()
	for _, c := range b.comms {
		if c.net != nil {
			c.net.Take()
		}
	}
	if moved {
		b.since = time.Time{}
		return true
	}
	b.part()
	b.ponder()
	return rang
}

// arm has the bell ring for all communicators, and says how long to sleep at most.
func (b *batch) arm() (pause time.Duration) {
	b.bell = shm.TakeBell()
	b.bell.Prepare()
	pause = b.pause()
	for _, c := range b.comms {
		if c.net != nil {
			c.net.Give()
		}
		if c.seg != nil && !b.bell.Arm(c.seg) || c.near != nil && !b.bell.Arm(c.near) {
			pause = time.Millisecond
		}
	}
	return pause
}

func (b *batch) disarm() {
	for _, c := range b.comms {
		if c.seg != nil {
			b.bell.Disarm(c.seg)
		}
		if c.near != nil {
			b.bell.Disarm(c.near)
		}
	}
	b.bell.Drop()
	b.bell = nil
}

// crowd is how many ranks may look every graceTime: each looks at all, so that hundreds would do nothing else.
const crowd = 64

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// ponder looks at a standstill: is it a rank that is gone, one that called something else, or past a limit?
func (b *batch) ponder() {
	now := time.Now()
	if b.since.IsZero() {
		b.since, b.check = now, now
	}
	for _, c := range b.comms {
		if c.open.Load() > 0 {
			c.overdue(now)
		}
	}
	late := b.late(now)
	if now.Before(b.check) && !late {
		return
	}
	b.check = now.Add(graceTime)
	for _, c := range b.comms {
		b.check = latest(b.check, now.Add(graceTime*time.Duration(c.n/crowd)))
		if c.turn.err != nil || c.idle() || !b.pump && c.settled() {
			continue
		}
		err := c.diagnose(now.Sub(b.since), b.limit)
		if err == nil && late {
			err = c.expire(now.Sub(b.began))
		}
		if err != nil && !c.looksAgain() {
			c.drop(err)
		}
	}
}

// looksAgain looks once more before a rank is blamed, and reports whether anything has moved: one that has left since the last look may
// have given all before it did.
func (c *Comm) looksAgain() bool {
	moved, _ := c.advance()
	return moved
}

// settled reports whether the batch that has the turn has nothing left to wait for.
func (c *Comm) settled() bool { return c.turn.left == 0 && (c.msgs == nil || c.msgs.own == 0) }

// idle reports whether nobody has: requests neither.
func (c *Comm) idle() bool {
	return !c.turn.on && c.turn.next == len(c.turn.queue) && (c.msgs == nil || c.msgs.live == 0)
}
