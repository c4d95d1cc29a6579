// Package boot is how the ranks of a communicator meet: the roll call under a unique id, and the first exchange of what each rank
// wants the others to know.
//
//	Meet ── rollcall.go ──> the maker of the id: C, capi/shim/meet*.c, with the layouts in meet.h
//	     ├─ rounds.go ────> ranks r+1, r+2, r+4, ...: an all-gather in log2(n) rounds over connections of their own
//	     └─ speak.go ─────> where ranks are shared out to several ids: speakers of the parts meet, and pass on what they heard
//	Service (service.go, inbox.go, dial.go): one listener per process, for these rounds and for every later TCP connection
//
// Every connection proves the id's secret in both directions before a byte of it is believed, so strangers who connect neither
// join nor delay. Nothing here trusts a length or a rank that a peer wrote. With a pre-shared key (secure.go) the proof is made inside
// a TLS handshake and all that follows is encrypted; the maker of the id, which is plain C, then passes on what it cannot read.
//
// Meet runs on the calling thread and waits in poll(2): the thread came from C to wait anyway. The Service has one goroutine, and
// one thread, for all connections that have not proved themselves yet. Sockets are raw, non-blocking, CLOEXEC descriptors, and all
// sends carry MSG_NOSIGNAL, as net.Conn would raise SIGPIPE in a process that is not ours.
//
// It knows no communicator and no transport. Package core calls Meet; net/tcp gets its connections from Inbox.Accept and Dial.
package boot

import (
	"fmt"
	"math/bits"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
)

// MaxBlob is the largest contribution of one rank to the exchange.
const MaxBlob = 64 << 10

// Limit is what ends a wait.
type Limit struct {
	Deadline time.Time           // zero: none
	Peer     time.Duration       // for a host that answers nothing, HCCL_PEER_TIMEOUT; 0: as long as Deadline allows
	Abort    func() error        // asked every 20 ms; an error ends the wait and is returned. nil: none
	Late     func(missing []int) // told now and then whom the roll call still waits for; nil: nobody
	Lap      func(phase string)  // told at the end of each phase; nil: nobody
}

const tick = 20 * time.Millisecond // how often Abort is asked

// check returns why a wait must end, errDeadline for the deadline.
func (l *Limit) check() error {
	if err := l.aborted(); err != nil {
		return err
	}
	if !l.Deadline.IsZero() && !time.Now().Before(l.Deadline) {
		return errDeadline
	}
	return nil
}

// silent reports whether a host that has answered nothing since then counts as gone.
func (l *Limit) silent(since time.Time) bool { return l.Peer > 0 && time.Since(since) > l.Peer }

func (l *Limit) aborted() error {
	if l.Abort == nil {
		return nil
	}
	return l.Abort()
}

func (l *Limit) lap(phase string) {
	if l.Lap != nil {
		l.Lap(phase)
	}
}

// Settings are what the user has set. They are read when the Service is made.
type Settings struct {
	Interfaces string      // NCCL_SOCKET_IFNAME
	Family     string      // NCCL_SOCKET_FAMILY
	Ports      string      // HCCL_PORT_RANGE
	Library    string      // version and path of this library, for the message when another rank has another one
	Key        *secure.Key // pre-shared, with which all connections are encrypted; nil: none
}

var settings struct {
	mu sync.Mutex
	v  Settings // guarded by mu
}

// Configure replaces the settings. To be called before the first Default.
func Configure(s Settings) {
	settings.mu.Lock()
	settings.v = s
	settings.mu.Unlock()
}

func configured() Settings {
	settings.mu.Lock()
	defer settings.mu.Unlock()
	return settings.v
}

// FDs, if set before the first use of the package, hears of every descriptor that is opened and closed here, so that a forked
// child can close them. Descriptors that Accept and Dial return have been reported; Close reports their end.
var FDs interface {
	Opened(fd int)
	Closed(fd int)
}

func opened(fd int) int {
	if FDs != nil {
		FDs.Opened(fd)
	}
	return fd
}

// Close closes a descriptor of this package.
func Close(fd int) {
	if FDs != nil {
		FDs.Closed(fd) // before the number can be given to somebody else
	}
	unix.Close(fd)
}

// meeting is one rank on its way through a roll call and the rounds after it.
type meeting struct {
	id     *uniqueID
	makers []*uniqueID // to which the ranks are shared out
	circle
	rank    int // in the communicator
	lim     Limit
	self    contact
	news    []byte // of a herald, in the place of self
	inbox   *Inbox
	purpose uint8          // of the connections of the rounds
	root    netip.AddrPort // where the roll call was
	most    int            // bytes that one rank may contribute
	key     *secure.Key    // pre-shared; nil: none
}

// newMeeting opens an inbox for the rounds, which close ends.
func newMeeting(all []*uniqueID, id *uniqueID, c circle, rank int, lim Limit) (*meeting, error) {
	svc, err := Default()
	if err != nil {
		return nil, err
	}
	m := &meeting{id: id, makers: all, circle: c, rank: rank, lim: lim, self: contact{svc.NewKey(), svc.addrs}, most: MaxBlob,
		key: configured().Key}
	m.inbox = svc.Expect(m.self.key, id.secret[:])
	m.inbox.Awaits(bits.Len(uint(c.size())))
	return m, nil
}

func (m *meeting) close() { m.inbox.Close() }

// Meet brings rank of n together with the others that use the same unique ids, which stand in ids one after the other and share the
// ranks out among their makers. It returns what every rank gave as mine, in rank order. Its errors are the types of errors.go, or what
// lim.Abort returned.
func Meet(ids []byte, rank, n int, mine []byte, lim Limit) ([][]byte, error) {
	all, err := parseIDs(ids, n)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxRanks || rank < 0 || rank >= n || len(mine) > MaxBlob {
		return nil, &ArgumentError{fmt.Sprintf("rank %d of %d with %d bytes to tell: the rank must be below the number of ranks "+
			"(at most %d), and the bytes at most %d", rank, n, len(mine), maxRanks, MaxBlob)}
	}
	c := circleOf(rank, n, len(all))
	if rank == 0 {
		all[0].tellLeft()
	}
	m, err := newMeeting(all, all[c.part], c, rank, lim)
	if err != nil {
		return nil, err
	}
	defer m.close()
	blobs, err := m.meet(mine)
	if err != nil && len(all) > 1 {
		m.spreadNews(err)
	}
	return blobs, err
}

func (m *meeting) meet(mine []byte) ([][]byte, error) {
	partners, err := m.rollCall()
	if err != nil {
		return nil, err
	}
	m.lim.lap("roll call")
	x, err := m.begin(partners)
	if err != nil {
		return nil, err
	}
	defer x.close()
	blobs, err := x.gather(mine)
	m.lim.lap("exchange")
	if err != nil || m.ids == 1 {
		return blobs, err
	}
	return x.beyond(blobs)
}
