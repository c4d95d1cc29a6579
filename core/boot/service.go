package boot

import (
	"crypto/rand"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/log"
)

// Service is the listener of this process: it takes connections, lets them prove that they know a communicator's secret, and hands
// them to the Inbox that expects them. One goroutine does it all in one poll(2) loop.
//
//	dialer                              service
//	  | ---------- connects ------------> |
//	  | <--------- greeting ------------- |  magic, version, whether it encrypts, tag, nonce         (32 bytes)
//	  | ---------- join ----------------> |  magic, version, purpose, from, key, nonce, HMAC         (80 bytes)
//	  | <--------- welcome -------------- |  magic, HMAC: the service proves the secret in its turn  (40 bytes)
//
// With a pre-shared key join and welcome travel inside a TLS handshake, which stands before them.
type Service struct {
	listeners []int // at one port: of all interfaces, and of each that shares its network with another
	tag       [8]byte
	addrs     []netip.AddrPort
	nics      []Interface
	divided   []Interface  // of nics: those whose networks overlap with another interface's
	own       []netip.Addr // of this host
	networks  []netip.Prefix
	reached   reached
	choice    string
	strangers atomic.Uint64

	mu      sync.Mutex
	inboxes map[Key]*Inbox // guarded by mu
	awaited int            // guarded by mu: connections that will come soon, of all inboxes

	guests []*guest // of the loop alone, in the order of their arrival
}

// Bounds on those who have not proved anything yet.
const (
	maxGuests     = 128  // beside those that are awaited; the oldest goes for a new one
	mostAwaited   = 4096 // of these
	guestTime     = 5 * time.Second
	restTime      = 50 * time.Millisecond // of the listener, when no descriptor is left
	acceptsATurn  = 64
	greetingMagic = 0x5652434e
)

const (
	joinSize, joinMagicValue       = 80, 0x4e494a4e
	joinMagic, joinVersion         = 0, 4
	joinPurpose, joinFrom          = 6, 8
	joinKey, joinNonce, joinMAC    = 16, 32, 48
	welcomeSize, welcomeMagicValue = 40, 0x4d4c574e
	welcomeMagic, welcomeMAC       = 0, 8
	labelJoin, labelWelcome        = "hccl join", "hccl welcome"
)

var theService struct {
	mu sync.Mutex
	s  *Service // guarded by mu; never closed
}

// Default is the one Service of the process, made at the first call.
func Default() (*Service, error) {
	theService.mu.Lock()
	defer theService.mu.Unlock()
	if theService.s == nil {
		s, err := newService(configured())
		if err != nil {
			return nil, err
		}
		theService.s = s
	}
	return theService.s, nil
}

func newService(set Settings) (*Service, error) {
	all, names, err := hostAddrs()
	if err != nil {
		return nil, err
	}
	ips, left, err := chooseAddrs(set, all, names)
	if err != nil {
		return nil, err
	}
	if left > 0 {
		log.WarnOnce("left out of addresses", "this host has more interfaces than are told to other ranks: %d of their addresses are not; %s",
			left, choose)
	}
	s := &Service{inboxes: map[Key]*Inbox{}}
	rand.Read(s.tag[:])
	port, err := s.listen(set)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		s.addrs = append(s.addrs, netip.AddrPortFrom(ip, port))
	}
	s.nics, s.choice = chooseInterfaces(set, all, names)
	for _, a := range all {
		s.own = append(s.own, a.addr)
		s.networks = append(s.networks, netip.PrefixFrom(a.addr, a.bits).Masked())
	}
	s.divide(all)
	go s.serve()
	return s, nil
}

// current is Default's, nil before its first call.
func current() *Service {
	theService.mu.Lock()
	defer theService.mu.Unlock()
	return theService.s
}

// Addrs are the addresses at which this process listens, likely ones first and loopback last. The caller must not change them.
func (s *Service) Addrs() []netip.AddrPort { return s.addrs }

// NewKey is a key for Expect. It names this Service too, so that a dialer is not misled by an address that means another process
// on its own host.
func (s *Service) NewKey() Key {
	var k Key
	copy(k[:], s.tag[:])
	rand.Read(k[len(s.tag):])
	return k
}

// owns reports whether NewKey has made the key.
func (s *Service) owns(k Key) bool { return [8]byte(k[:8]) == s.tag }

// closed reports whether the key is one of ours whose inbox has been closed and answers nobody for that purpose: keys are given away when
// theirs is open.
func (s *Service) closed(k Key, purpose uint8) bool {
	if !s.owns(k) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	box := s.inboxes[k]
	return box == nil || box.closed && box.answers[purpose] == nil
}

// Strangers counts the connections that were closed because they proved nothing in time.
func (s *Service) Strangers() uint64 { return s.strangers.Load() }

// Strangers are those of this process's Service, and where it listens; there may be none yet.
func Strangers() (n uint64, port string) {
	s := current()
	if s == nil {
		return 0, "nowhere yet"
	}
	return s.Strangers(), "port " + strconv.Itoa(int(s.addrs[0].Port()))
}

// --- The loop ---

func (s *Service) serve() {
	var fds []unix.PollFd
	var restUntil time.Time
	for {
		fds = fds[:0]
		for _, fd := range s.listeners {
			if time.Now().Before(restUntil) {
				fd = -1
			}
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		for _, g := range s.guests {
			fds = append(fds, g.pollFd())
		}
		unix.Poll(fds, s.timeout(restUntil)) // EINTR: another look does no harm
		now, i := time.Now(), len(s.listeners)
		s.guests = slices.DeleteFunc(s.guests, func(g *guest) bool {
			i++
			return (fds[i-1].Revents != 0 || now.After(g.until)) && s.look(g, now)
		})
		for k, fd := range s.listeners {
			if fds[k].Revents != 0 && !s.accept(fd) {
				restUntil = now.Add(restTime)
			}
		}
	}
}

// timeout is how long, in milliseconds, nothing happens that poll does not tell; -1: for ever.
func (s *Service) timeout(restUntil time.Time) int {
	wait := time.Duration(-1)
	if len(s.guests) > 0 {
		wait = max(0, time.Until(s.guests[0].until))
	}
	if rest := time.Until(restUntil); rest > 0 && (wait < 0 || rest < wait) {
		wait = rest
	}
	if wait < 0 {
		return -1
	}
	return int(wait/time.Millisecond) + 1
}

// accept takes new connections; false when there is no descriptor for them.
func (s *Service) accept(listener int) bool {
	for range acceptsATurn {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch err {
		case nil:
			s.greet(opened(fd))
		case unix.EINTR, unix.ECONNABORTED, unix.EPROTO:
		case unix.EAGAIN:
			return true
		default: // EMFILE and its like
			log.WarnOnce("full", "no connection of another process can be taken: %v; the ranks that wait for it fail when their limit "+
				"passes: raise ulimit -n", err)
			if len(s.guests) > 0 {
				s.drop(0)
			}
			return false
		}
	}
	return true
}

func (s *Service) seats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maxGuests + min(s.awaited, mostAwaited)
}

func (s *Service) greet(fd int) {
	if len(s.guests) >= s.seats() {
		s.drop(0)
	}
	g := &guest{stream: stream{fd: fd}, until: time.Now().Add(guestTime)}
	le.PutUint32(g.greeting[challengeMagic:], greetingMagic)
	le.PutUint16(g.greeting[challengeVersion:], wireVersion)
	copy(g.greeting[challengeRoot:], s.tag[:])
	rand.Read(g.greeting[challengeNonce:])
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	key := configured().Key
	if key != nil {
		g.greeting[challengeEncrypts] = 1
	}
	g.send(g.greeting[:]) // an error shows when it is looked at
	if key != nil {
		g.shaking, _ = shake(&g.stream, key.Host(joinSize, func(join []byte) []byte { return s.welcome(g, join) }))
	}
	s.guests = append(s.guests, g)
}

func (s *Service) drop(i int) {
	s.guests[i].close()
	s.strangers.Add(1)
	s.guests = slices.Delete(s.guests, i, i+1)
}
