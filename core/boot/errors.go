package boot

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Values of ncclResult_t.
const (
	systemError     = 2
	invalidArgument = 4
	invalidUsage    = 5
	remoteError     = 6
	timeout         = 8
)

var errDeadline = errors.New("the limit has passed")

// ArgumentError is a call that can never work.
type ArgumentError struct{ Text string }

func (e *ArgumentError) Error() string { return e.Text }

// Result is the ncclResult_t of the error.
func (e *ArgumentError) Result() int { return invalidArgument }

// AbsentError says which ranks had not come when the init limit of one of the others passed.
type AbsentError struct {
	Ranks []int // the first of them
	N     int   // ranks of the communicator
	By    int   // rank whose limit has passed
	Root  netip.AddrPort
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("not all of %d ranks came to the roll call at %v before the limit of rank %d passed; missing: %s. "+
		"See why they do not start, or raise HCCL_INIT_TIMEOUT", e.N, e.Root, e.By, list(e.Ranks))
}

// Result is the ncclResult_t of the error.
func (e *AbsentError) Result() int { return timeout }

func list(ranks []int) string {
	if len(ranks) == 0 {
		return "unknown, as the maker of the id no longer answers"
	}
	var b strings.Builder
	b.WriteString("rank")
	if len(ranks) > 1 {
		b.WriteString("s")
	}
	b.WriteString(" ")
	for i, r := range ranks {
		if i == 32 {
			fmt.Fprintf(&b, " and %d more", len(ranks)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r)
	}
	return b.String()
}

// UsedError is an id that has served already.
type UsedError struct {
	Rank    int
	Several bool // it is one of several
}

func (e *UsedError) Error() string {
	if e.Several {
		return fmt.Sprintf("rank %d: id already used, or the ids do not stand in the same order on all ranks; make new ones with "+
			"ncclGetUniqueId for each communicator", e.Rank)
	}
	return fmt.Sprintf("rank %d: id already used, make a new one with ncclGetUniqueId for each communicator", e.Rank)
}

// Result is the ncclResult_t of the error.
func (e *UsedError) Result() int { return invalidUsage }

// VersionError is a rank that loaded a library which speaks another protocol. Text names both with their files.
type VersionError struct {
	Rank int
	Text string
}

func (e *VersionError) Error() string { return "ranks of different libraries cannot meet: " + e.Text }

// Result is the ncclResult_t of the error.
func (e *VersionError) Result() int { return invalidUsage }

// DuplicateError is a rank that came twice.
type DuplicateError struct {
	Rank int
	Text string
}

func (e *DuplicateError) Error() string { return e.Text }

// Result is the ncclResult_t of the error.
func (e *DuplicateError) Result() int { return invalidUsage }

// SizeError is ranks that were started with different numbers of ranks; Rank is the one that was found to differ.
type SizeError struct {
	Rank int
	Text string
}

func (e *SizeError) Error() string { return e.Text + ": give all the same number" }

// Result is the ncclResult_t of the error.
func (e *SizeError) Result() int { return invalidUsage }

// RankError is a rank that failed, went away or was aborted while the others were meeting it.
type RankError struct {
	Rank int
	Text string
}

func (e *RankError) Error() string { return e.Text }

// Result is the ncclResult_t of the error.
func (e *RankError) Result() int { return remoteError }

// SilentError is a rank that did not answer before the limit passed. Rank is -1 where only its address is known.
type SilentError struct {
	Rank int
	Text string // what it did not do
	Gone bool   // it refuses, so its process has ended or wants no more
}

func (e *SilentError) Error() string {
	if e.Rank < 0 {
		return "a rank " + e.Text
	}
	return fmt.Sprintf("rank %d %s", e.Rank, e.Text)
}

// Result is the ncclResult_t of the error.
func (e *SilentError) Result() int {
	if e.Gone {
		return remoteError
	}
	return timeout
}

// UnreachableError is a maker of the id that cannot be reached at any of its addresses.
type UnreachableError struct {
	Addrs []netip.AddrPort
	Why   []string // for each address
	Fixed bool     // the addresses are those of NCCL_COMM_ID
	Left  int      // addresses of its host that the id has no room for
}

func (e *UnreachableError) Error() string {
	var b strings.Builder
	for i, a := range e.Addrs {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%v (%s)", a, e.Why[i])
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, " and %d more of its addresses for which the id has no room (%s)", e.Left, choose)
	}
	if e.Fixed {
		return fmt.Sprintf("root at %s not reachable: rank 0 must listen there, see whether it runs on that host and calls init",
			b.String())
	}
	return fmt.Sprintf("root at %s not reachable: the process that made the id must live until all ranks have met, and "+
		"NCCL_SOCKET_IFNAME must choose interfaces that lead to this host; a firewall between the hosts must let the ports of "+
		"HCCL_PORT_RANGE through", b.String())
}

// Result is the ncclResult_t of the error.
func (e *UnreachableError) Result() int { return systemError }

// MakerError is an id among several whose maker cannot be reached, as one of its ranks has found.
type MakerError struct{ Text string }

func (e *MakerError) Error() string { return e.Text }

// Result is the ncclResult_t of the error.
func (e *MakerError) Result() int { return systemError }

// OrderError is a rank whose ids are not those of the others, or stand in another order.
type OrderError struct {
	Rank int
	Text string
}

func (e *OrderError) Error() string { return e.Text }

// Result is the ncclResult_t of the error.
func (e *OrderError) Result() int { return invalidUsage }

// SystemError is something that this host refused.
type SystemError struct {
	Text string
	Err  error
}

func (e *SystemError) Error() string { return fmt.Sprintf("%s: %v", e.Text, e.Err) }
func (e *SystemError) Unwrap() error { return e.Err }

// Result is the ncclResult_t of the error.
func (e *SystemError) Result() int { return systemError }

// Blamed lists the ranks that an error of this package is about, nil where it is about none.
func Blamed(err error) []int {
	var (
		absent    *AbsentError
		version   *VersionError
		duplicate *DuplicateError
		size      *SizeError
		rank      *RankError
		silent    *SilentError
		order     *OrderError
		key       *KeyError
	)
	switch {
	case errors.As(err, &absent):
		return absent.Ranks
	case errors.As(err, &version):
		return []int{version.Rank}
	case errors.As(err, &duplicate):
		return []int{duplicate.Rank}
	case errors.As(err, &size):
		return []int{size.Rank}
	case errors.As(err, &order):
		return []int{order.Rank}
	case errors.As(err, &rank):
		return []int{rank.Rank}
	case errors.As(err, &silent) && silent.Rank >= 0:
		return []int{silent.Rank}
	case errors.As(err, &key) && key.Rank >= 0:
		return []int{key.Rank}
	}
	return nil
}
