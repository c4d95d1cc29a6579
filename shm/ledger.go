package shm

import (
	"crypto/rand"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Ledger is a page that the processes of one user in one network namespace share, also those of different jobs: each tells there how
// much it sends by a network card, so that together they keep a bound. Nothing depends on it but that bound.
//
//	line 0    magic
//	line k    owner | stamp | card | hungry | reserved | sent      an account, of one process and one card
//
// An account belongs to who has written its owner; one whose stamp is old is anybody's. A process that was stopped for long finds its
// account taken and opens another.
//
// It belongs to one goroutine.
type Ledger struct {
	meeting meeting
	fd      int     // of the page
	page    uintptr // 0: there is no memory for it
	mine    map[uint64]uintptr
	me      uint64
}

const (
	ledgerLines = 256
	ledgerSize  = ledgerLines * lineSize
	ledgerMagic = 0x3152474c4c434348
	accountLife = 2000 // milliseconds after the last stamp
)

// Offsets in an account.
const (
	accountOwner = 8 * iota
	accountStamp
	accountCard
	accountHungry
	accountReserved
	accountSent
)

// OpenLedger begins a ledger; it meets those of other processes while it is used. Without memory it is this process's alone.
func OpenLedger() *Ledger { return openLedger(ledgerName()) }

func openLedger(name string) *Ledger {
	var b [8]byte
	rand.Read(b[:]) // never fails
	l := &Ledger{meeting: meeting{name: name, listener: -1, host: -1}, fd: -1, mine: map[uint64]uintptr{},
		me: binary.LittleEndian.Uint64(b[:]) | 1}
	if fd, err := newMemfd(ledgerSize); err == nil {
		l.adopt(fd)
	}
	return l
}

// Post replaces what this process tells of a card and returns the sums of what all tell.
func (l *Ledger) Post(card uint64, mine [3]uint64) (all [3]uint64) {
	if l.page == 0 {
		return mine
	}
	if fd := l.meeting.turn(l.fd); fd >= 0 {
		l.adopt(fd)
	}
	now := milliseconds()
	own := l.account(card, now)
	if own == 0 {
		return mine
	}
	for k, v := range mine {
		word64(own + accountHungry + uintptr(8*k)).Store(v)
	}
	word64(own + accountStamp).Store(now)
	for k := uintptr(1); k < ledgerLines; k++ {
		at := l.page + k*lineSize
		if word64(at+accountOwner).Load() == 0 || word64(at+accountCard).Load() != card || stale(at, now) {
			continue
		}
		for k := range all {
			all[k] += word64(at + accountHungry + uintptr(8*k)).Load()
		}
	}
	return all
}

// account finds or opens that of a card; 0: there is none to be had.
func (l *Ledger) account(card, now uint64) uintptr {
	if at := l.mine[card]; at != 0 && word64(at+accountOwner).Load() == l.me {
		return at
	}
	delete(l.mine, card)
	for k := uintptr(1); k < ledgerLines; k++ {
		at := l.page + k*lineSize
		was := word64(at + accountOwner).Load()
		if was != 0 && !stale(at, now) || !word64(at+accountOwner).CompareAndSwap(was, l.me) {
			continue
		}
		word64(at + accountStamp).Store(now) // first: from here on it is nobody else's
		word64(at + accountCard).Store(card)
		l.mine[card] = at
		return at
	}
	return 0
}

// stale reports whether an account's owner has not been heard of for long.
func stale(at uintptr, now uint64) bool {
	stamp := word64(at + accountStamp).Load()
	return now > stamp && now-stamp > accountLife
}

// adopt uses the page in fd from now on, if it is one and another one than before. It takes fd over.
func (l *Ledger) adopt(fd int) {
	page, err := mapLedger(fd)
	if err != nil || l.page != 0 && sameFile(fd, l.fd) {
		if err == nil {
			unmapMemory(page, ledgerSize)
		}
		unix.Close(fd)
		return
	}
	if l.page != 0 {
		unmapMemory(l.page, ledgerSize)
		closeKept(l.fd)
	}
	l.page, l.fd = page, keep(fd)
	clear(l.mine)
}

func mapLedger(fd int) (uintptr, error) {
	size, err := checkMemory(fd, false)
	if err == nil && size != ledgerSize {
		err = unix.EINVAL
	}
	if err == nil {
		err = commit(fd, 0, ledgerSize)
	}
	if err != nil {
		return 0, err
	}
	page, err := mapMemory(fd, ledgerSize, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return 0, err
	}
	if word64(page).CompareAndSwap(0, ledgerMagic); word64(page).Load() != ledgerMagic {
		unmapMemory(page, ledgerSize)
		return 0, unix.EINVAL
	}
	return page, nil
}

func sameFile(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

func milliseconds() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return uint64(t.Nano() / 1e6)
}
