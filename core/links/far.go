package links

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/tcp"
)

// far is another process, as this one reaches it. What is not said to be guarded belongs to the keeper.
//
//	unknown ── reach ──> at rest ── something to send ──> being connected ──> connected
//	                       ^                                                    │
//	                       └──────────── idle for HCCL_NET_IDLE ────────────────┘
type Far struct {
	pool    *Pool
	name    [16]byte
	token   [16]byte
	secret  secret
	inbox   *boot.Inbox
	link    *tcp.Link
	addrs   []netip.AddrPort
	rails   []netip.AddrPort // of the interfaces there that are to carry data
	remote  bool             // on another host
	dials   bool             // this process does, the other one knocks
	distant []netip.Addr     // of cards here that are nearer to other processes
	terms   Terms

	call    *boot.Attempt               // the first connection, or a knock, under way
	called  time.Time                   // when call began
	began   time.Time                   // since when a connection is wanted
	again   time.Time                   // when to knock again
	wants   []*wantedRail               // those that this process dials once there is one
	planned [2]netip.Addr               // first, as wants were made for it
	carried [tcp.MaxRails][2]netip.Addr // ends of the last connection of each rail
	widths  [tcp.MaxPaths]*width        // of those that follow the load; nil: the user has said, or there is no such path
	aid     relief                      // one beside rails that stand still
	moved   uint64                      // what had passed by the link at the last look
	still   time.Time                   // since when nothing more has
	wanted  atomic.Bool                 // somebody needs a connection
	last    atomic.Int32                // 1 + the rail that the other end let go of, and no other was left; 0: none

	mu      sync.Mutex
	first   [2]netip.Addr // the ends of rail 0; written under mu
	users   []user        // guarded by mu
	why     string        // why the last attempt failed; guarded by mu
	changed chan struct{} // closed, and made anew, when there is a connection, or none to be had; guarded by mu
}

// user is a rank of a communicator that is in the other process.
type user struct {
	User
	rank int
}

func (f *Far) enter(u User, rank int) {
	f.mu.Lock()
	f.users = append(f.users, user{u, rank})
	f.mu.Unlock()
}

func (f *Far) leave(u User) {
	f.mu.Lock()
	f.users = slices.DeleteFunc(f.users, func(o user) bool { return o.User == u })
	f.mu.Unlock()
}

func (f *Far) used() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.users) > 0
}

// label names the process by a rank, for the log.
func (f *Far) label() (label string, rank int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.users {
		if u := &f.users[i]; !u.Closing() {
			return u.Label(), u.rank
		}
	}
	return "that has ended", -1
}

func (f *Far) say(what string, args ...any) {
	if log.On(log.LevelInfo, log.Net) {
		label, _ := f.label()
		log.Info(log.Net, "communicator %s: %s", label, fmt.Sprintf(what, args...))
	}
}

// Remote reports whether the process is on another host.
func (f *Far) Remote() bool { return f.remote }

// Stuck is for how long nothing has moved though something is to be sent.
func (f *Far) Stuck() time.Duration { return f.link.Stuck() }

// Connect waits until there is a connection.
func (f *Far) Connect(lim boot.Limit) error {
	for !f.link.Open() {
		f.needs()
		if err := f.link.Lost(); err != nil {
			return err
		}
		if err := f.await(&lim); err != nil {
			return err
		}
	}
	return nil
}

// await returns when the connection may be there, after a moment at most, or with the reason to wait no longer.
func (f *Far) await(lim *boot.Limit) error {
	f.mu.Lock()
	changed, why := f.changed, f.why
	f.mu.Unlock()
	if lim.Abort != nil {
		if err := lim.Abort(); err != nil {
			return err
		}
	}
	if !lim.Deadline.IsZero() && time.Now().After(lim.Deadline) {
		return &LateError{cmp.Or(why, "the other end was asked to connect and has not")}
	}
	timer := time.NewTimer(abortTime)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
	return nil
}

// change wakes those who wait for a connection.
func (f *Far) change() {
	f.mu.Lock()
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
}

// turn goes on with what is under way, and says when to come again. done: it can be forgotten if nobody uses it.
func (f *Far) turn(now time.Time) (pace time.Duration, done bool) {
	f.accept()
	if f.link.Lost() != nil {
		return idleTime, true
	}
	if !f.link.Open() || !f.served() {
		f.narrow()
		return f.raise(now), !f.used() && !f.wanted.Load()
	}
	f.began = time.Time{}
	f.hangUp()
	return min(f.lay(now), f.rest(now)), false
}

// accept takes the connections that have arrived, and the knocks.
func (f *Far) accept() {
	for {
		purpose, _, conn, ok := f.inbox.Next(purposeKnock, purposeRail+tcp.MaxRails-1)
		if !ok {
			return
		}
		if purpose == purposeKnock {
			boot.Close(conn.FD)
			f.wanted.Store(true)
			continue
		}
		f.add(int(purpose-purposeRail), conn)
	}
}

func (f *Far) fail(why error) {
	f.hangUp()
	f.link.Fail(why)
	f.change()
}

const (
	abortTime = 20 * time.Millisecond  // how often a wait looks for Abort
	knockTime = 500 * time.Millisecond // before one knocks again
)

func (f *Far) hangUp() {
	if f.call != nil {
		f.call.Close()
		f.call = nil
	}
}

// add hands a connection over to the link.
func (f *Far) add(rail int, conn boot.Conn) {
	if f.remote {
		f.pool.svc.Pin(conn.FD)
	}
	local, remote := boot.Ends(conn.FD)
	f.carried[rail] = [2]netip.Addr{local, remote}
	if rail == 0 {
		f.mu.Lock()
		f.first = [2]netip.Addr{local, remote}
		f.mu.Unlock()
		f.strays(local, remote)
	}
	f.link.Distant(rail, slices.Contains(f.distant, local))
	if err := f.link.AddRail(rail, conn.FD, conn.Keys); err != nil {
		f.say("%s: %v", railName(rail), err)
		return
	}
	f.still = time.Time{}
	if rail == 0 {
		f.plan(time.Now())
	}
	f.change()
}

// strays warns where the first connection goes by an interface that the user has not named: the other host has named one that those do not
// lead to, and ranks that have met somehow are better than none.
func (f *Far) strays(local, remote netip.Addr) {
	if !f.remote || f.terms.Named == "" {
		return
	}
	var names []string
	for _, n := range f.pool.svc.Interfaces() {
		names = append(names, n.Name)
	}
	by := boot.InterfaceOf(local)
	if by == "" || slices.Contains(names, by) {
		return
	}
	label, rank := f.label()
	log.Warn("communicator %s: data for rank %d go by %s to %v, though NCCL_SOCKET_IFNAME=%s: none of %s leads to an address that its host "+
		"has named; compare NCCL_SOCKET_IFNAME on both hosts", label, rank, by, remote, f.terms.Named, strings.Join(names, ", "))
}

// rest lets go of sockets that nothing has gone by for a while.
func (f *Far) rest(now time.Time) (pace time.Duration) {
	moved, waits := f.link.Moved()
	if moved != f.moved || waits || f.still.IsZero() {
		f.moved, f.still = moved, now
	}
	if f.terms.Idle > 0 && now.Sub(f.still) >= f.terms.Idle {
		f.say("connections to %v are closed after %v without use, and made again when they are needed", f.addrs[0].Addr(), f.terms.Idle)
		f.narrow()
		f.link.Part()
		return tendTime
	}
	return max(min(idleTime, f.terms.Idle/4), attendTime)
}

// Ends are those of the first connection.
func (f *Far) Ends() (local, remote netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first[0], f.first[1]
}

// end gives up what is kept of the process. Nobody uses it.
func (f *Far) end() {
	f.hangUp()
	f.aid.hangUp()
	f.drop()
	f.inbox.Close()
	f.link.Close()
}
