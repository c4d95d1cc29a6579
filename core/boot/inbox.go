package boot

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Key names an Inbox among all of its process: 16 random bytes that the owner passes to those who are to connect.
type Key [16]byte

// Inbox holds the connections that arrived for one key until somebody accepts them. Its fields are guarded by svc.mu.
type Inbox struct {
	svc     *Service
	key     Key
	secret  []byte // not guarded: never changes
	closed  bool
	awaits  int // connections that will come soon
	arrived []arrival
	changed chan struct{}    // closed, and made anew, at each arrival
	bell    int              // an eventfd that is rung at each arrival, for a wait in poll(2); -1: none
	told    func()           // called at each arrival; nil: nobody is
	answers map[uint8][]byte // for each purpose, what an arrival hears before it is hung up on
}

type arrival struct {
	purpose uint8
	from    int
	Conn
	near *near // in the place of Conn
}

func (a *arrival) stream() *stream { return &stream{fd: a.FD, keys: a.Keys, near: a.near} }

func (a *arrival) close() { a.stream().close() }

const maxArrived = 1 << 16 // a bound on what a mad peer can leave here

// Expect opens an inbox: connections that name key and prove secret are kept from now on. Close ends it.
func (s *Service) Expect(key Key, secret []byte) *Inbox {
	b := &Inbox{svc: s, key: key, secret: secret, changed: make(chan struct{}), bell: -1}
	s.mu.Lock()
	s.inboxes[key] = b
	s.mu.Unlock()
	return b
}

// Awaits says how many connections will come soon, so that the Service has room for them until they have proved themselves. 0: that
// is over.
func (b *Inbox) Awaits(n int) {
	b.svc.mu.Lock()
	defer b.svc.mu.Unlock()
	if !b.closed {
		b.svc.awaited += n - b.awaits
		b.awaits = n
	}
}

// answer has those who connected or still connect for a purpose hear b, and be hung up on: the owner has failed, and they are to know why
// it is not there for them.
func (b *Inbox) answer(purpose uint8, with []byte) {
	b.svc.mu.Lock()
	defer b.svc.mu.Unlock()
	if b.closed {
		return
	}
	if b.answers == nil {
		b.answers = map[uint8][]byte{}
	}
	b.answers[purpose] = with
	b.arrived = slices.DeleteFunc(b.arrived, b.answered)
}

// answered reports whether a has been answered, with mu held.
func (b *Inbox) answered(a arrival) bool {
	with, ok := b.answers[a.purpose]
	if ok {
		s := a.stream()
		_ = s.send(with) // one that does not hear sees the connection end
		s.close()
	}
	return ok
}

// answersLong is how long those who come late still get their answer.
const answersLong = 5 * time.Second

// Close ends the inbox: who waits in Accept gets an error, connections that nobody accepted are closed, and later ones refused; answers
// are still given for a while.
func (b *Inbox) Close() {
	b.svc.mu.Lock()
	defer b.svc.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	b.svc.awaited -= b.awaits
	if len(b.answers) == 0 {
		delete(b.svc.inboxes, b.key)
	} else {
		time.AfterFunc(answersLong, b.forget)
	}
	for _, a := range b.arrived {
		a.close()
	}
	b.arrived = nil
	close(b.changed)
}

// forget makes the end of the answers.
func (b *Inbox) forget() {
	b.svc.mu.Lock()
	delete(b.svc.inboxes, b.key)
	b.svc.mu.Unlock()
}

// put keeps a connection, or answers it; false: nobody wants it any more.
func (b *Inbox) put(a arrival) bool {
	b.svc.mu.Lock()
	defer b.svc.mu.Unlock()
	if b.answered(a) {
		return true
	}
	if b.closed || len(b.arrived) >= maxArrived {
		return false
	}
	b.arrived = append(b.arrived, a)
	close(b.changed)
	b.changed = make(chan struct{})
	if b.bell >= 0 {
		ringBell(b.bell)
	}
	if b.told != nil {
		b.told()
	}
	return true
}

// take returns an arrival that fits, or waits: the channel that is closed when there may be another.
func (b *Inbox) take(fits func(arrival) bool) (a arrival, ok bool, wait <-chan struct{}, closed bool) {
	b.svc.mu.Lock()
	defer b.svc.mu.Unlock()
	for i, a := range b.arrived {
		if fits(a) {
			b.arrived = append(b.arrived[:i], b.arrived[i+1:]...)
			return a, true, nil, false
		}
	}
	return arrival{from: -1, Conn: none}, false, b.changed, b.closed
}

// ring makes each arrival ring an eventfd, which the caller keeps open until it has called ring(-1).
func (b *Inbox) ring(fd int) {
	b.svc.mu.Lock()
	b.bell = fd
	b.svc.mu.Unlock()
}

// Tell has f called at each arrival, on a goroutine that it must not hold up.
func (b *Inbox) Tell(f func()) {
	b.svc.mu.Lock()
	b.told = f
	b.svc.mu.Unlock()
}

// none is no connection.
var none = Conn{FD: -1}

// Accept returns the connection that rank from made for purpose, whether it came before the call or comes within lim. The
// descriptor is the caller's.
func (b *Inbox) Accept(purpose uint8, from int, lim Limit) (Conn, error) {
	fits := func(a arrival) bool { return a.purpose == purpose && a.from == from }
	for {
		a, ok, changed, closed := b.take(fits)
		if ok {
			return a.Conn, nil
		}
		if closed {
			return none, &SystemError{"waiting for a connection", unix.ECANCELED}
		}
		if err := lim.check(); err != nil {
			return none, acceptLimit(err, from)
		}
		timer := time.NewTimer(tick)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Next returns a connection that has arrived for one of the purposes first to last, whoever made it; ok is false where there is none.
func (b *Inbox) Next(first, last uint8) (purpose uint8, from int, c Conn, ok bool) {
	a, ok, _, _ := b.take(func(a arrival) bool { return a.purpose >= first && a.purpose <= last })
	return a.purpose, a.from, a.Conn, ok
}

func acceptLimit(err error, from int) error {
	if err == errDeadline {
		return &SilentError{from, "did not connect before the limit passed", false}
	}
	return err
}

// ringBell rings an eventfd, so there is no SIGPIPE; full is as good as rung.
func ringBell(fd int) { unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }
