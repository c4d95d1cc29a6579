// Package wire holds the byte layouts that ranks exchange outside shared segments: what a rank tells of itself when a communicator
// is made, and the frames of point-to-point messages. Each layout carries a version and is decoded with bounds checks, because the
// other end may be another build or no rank at all. It moves nothing itself; core calls it.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
)

// Version is the version of all layouts of this package. Ranks of different versions do not talk.
const Version = 3

// Setting is one value that ranks must agree on.
type Setting struct{ Name, Value string }

// Rate is what was measured from a rank's place to another place on its host, in bytes a second.
type Rate struct {
	To   string
	Rate float64
}

// Ring is an order of a host's ranks that a file asks for, with its line.
type Ring struct {
	Line int32
	Devs []int32
}

// Peer is what a rank tells all others of itself at init. Keys are random and known only to ranks of the communicator: who can
// name one on a host's abstract socket has proved to be on that host and in that network namespace.
type Peer struct {
	Library    string // version and path, for texts
	PID        int32
	Started    uint64 // start time of the process, so that a recycled PID is noticed
	BootID     string
	NetNS      uint64 // inode of the network namespace
	PIDNS      uint64
	NUMA       int32    // node that the rank's thread is bound to at init, -1: none or not known
	Cache      int32    // the last-level cache likewise, by its first processor
	Exchange   [16]byte // name of the process's abstract socket; equal for ranks of one process
	ArenaKey   [16]byte
	SegmentKey [16]byte
	Door       [16]byte         // under which the rank takes connections of this communicator
	Process    [16]byte         // name of the process; another one after a restart
	Token      [16]byte         // what only ranks of communicators of the process know
	Addrs      []netip.AddrPort // of the process's TCP listener
	Rails      []netip.AddrPort // of its interfaces that are to carry data, one for each
	CanShare   bool             // shared memory is possible and not switched off
	Settings   []Setting
	Host       string // name, for texts
	Topology   string // hash of the host's topology; "": not looked at
	Rates      []Rate
	Rings      []Ring
	Device     int32    // number of the GPU that the program names
	Described  [32]byte // SHA-256 of the Description that the rank can give of its host; zeros: none
	Size       uint32   // of that, in bytes
	Switch     string   // of the network, that its host hangs on; "": not known
	Pod        int32    // group of switches that that is of, -1: none
	File       string   // that describes its host; "": none
	WhyNot     string   // why the file does not, for people; "": it does, or there is none
}

const (
	maxText  = 4096
	maxItems = 256
	maxDevs  = 4096 // of a ring; longer ones are not told
)

var errShort = errors.New("a peer's description is cut short")

// Append appends p's encoding to b.
func (p *Peer) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, Version)
	b = appendText(b, p.Library)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.PID))
	b = binary.LittleEndian.AppendUint64(b, p.Started)
	b = appendText(b, p.BootID)
	b = binary.LittleEndian.AppendUint64(b, p.NetNS)
	b = binary.LittleEndian.AppendUint64(b, p.PIDNS)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.NUMA))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.Cache))
	b = append(b, p.Exchange[:]...)
	b = append(b, p.ArenaKey[:]...)
	b = append(b, p.SegmentKey[:]...)
	b = append(b, p.Door[:]...)
	b = append(b, p.Process[:]...)
	b = append(b, p.Token[:]...)
	b = append(b, flag(p.CanShare))
	for _, list := range [][]netip.AddrPort{p.Addrs, p.Rails} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(list)))
		for _, a := range list {
			b = appendText(b, a.String())
		}
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.Settings)))
	for _, s := range p.Settings {
		b = appendText(appendText(b, s.Name), s.Value)
	}
	return p.appendTopology(b)
}

func (p *Peer) appendTopology(b []byte) []byte {
	b = appendText(appendText(b, p.Host), p.Topology)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.Rates)))
	for _, r := range p.Rates {
		b = binary.LittleEndian.AppendUint64(appendText(b, r.To), math.Float64bits(r.Rate))
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.Rings)))
	for _, r := range p.Rings {
		b = binary.LittleEndian.AppendUint32(b, uint32(r.Line))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(r.Devs)))
		for _, d := range r.Devs {
			b = binary.LittleEndian.AppendUint32(b, uint32(d))
		}
	}
	b = append(binary.LittleEndian.AppendUint32(b, uint32(p.Device)), p.Described[:]...)
	b = appendText(binary.LittleEndian.AppendUint32(b, p.Size), p.Switch)
	return appendText(appendText(binary.LittleEndian.AppendUint32(b, uint32(p.Pod)), p.File), p.WhyNot)
}

func (p *Peer) decodeTopology(r *reader) {
	p.Host, p.Topology = r.text(), r.text()
	for range r.items(maxItems) {
		rate := Rate{r.text(), math.Float64frombits(r.u64())}
		if r.err == nil && !(rate.Rate > 0) {
			r.err = fmt.Errorf("a peer's rate of %g", rate.Rate)
		}
		p.Rates = append(p.Rates, rate)
	}
	for range r.items(maxItems) {
		ring := Ring{Line: int32(r.u32())}
		for range r.items(maxDevs) {
			ring.Devs = append(ring.Devs, int32(r.u32()))
		}
		p.Rings = append(p.Rings, ring)
	}
	p.Device = int32(r.u32())
	copy(p.Described[:], r.take(32))
	p.Size, p.Switch, p.Pod, p.File, p.WhyNot = r.u32(), r.text(), int32(r.u32()), r.text(), r.text()
}

// Fits leaves out what is too much to be told.
func (p *Peer) Fits() {
	p.Rates = p.Rates[:min(len(p.Rates), maxItems)]
	p.Rings = slices.DeleteFunc(p.Rings, func(r Ring) bool { return len(r.Devs) > maxDevs })
	p.Rings = p.Rings[:min(len(p.Rings), maxItems)]
}

// Decode reads what Append wrote. A version that is not ours is an error that says both.
func (p *Peer) Decode(b []byte) error {
	r := reader{b: b}
	if v := r.u16(); r.err == nil && v != Version {
		return fmt.Errorf("wire version %d, ours is %d", v, Version)
	}
	*p = Peer{Library: r.text(), PID: int32(r.u32()), Started: r.u64(), BootID: r.text(), NetNS: r.u64(), PIDNS: r.u64(),
		NUMA: int32(r.u32()), Cache: int32(r.u32())}
	copy(p.Exchange[:], r.take(16))
	copy(p.ArenaKey[:], r.take(16))
	copy(p.SegmentKey[:], r.take(16))
	copy(p.Door[:], r.take(16))
	copy(p.Process[:], r.take(16))
	copy(p.Token[:], r.take(16))
	if f := r.take(1); f != nil {
		p.CanShare = f[0] == 1
	}
	for _, list := range []*[]netip.AddrPort{&p.Addrs, &p.Rails} {
		for range r.items(maxItems) {
			a, err := netip.ParseAddrPort(r.text())
			if r.err == nil && err != nil {
				return fmt.Errorf("a peer's address: %w", err)
			}
			*list = append(*list, a)
		}
	}
	for range r.items(maxItems) {
		p.Settings = append(p.Settings, Setting{Name: r.text(), Value: r.text()})
	}
	p.decodeTopology(&r)
	if r.err == nil && len(r.b) != 0 {
		return fmt.Errorf("a peer's description has %d bytes too many", len(r.b))
	}
	return r.err
}

func appendText(b []byte, s string) []byte {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

// reader takes values off a buffer; after the first shortage it gives zeros and keeps the error.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || len(r.b) < n {
		r.err = errShort
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u16() uint16 {
	if v := r.take(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if v := r.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if v := r.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (r *reader) text() string {
	n := int(r.u16())
	if n > maxText {
		r.err = fmt.Errorf("a peer's text of %d bytes", n)
		return ""
	}
	return string(r.take(n))
}

func (r *reader) items(most int) int {
	n := int(r.u16())
	if n > most {
		r.err = fmt.Errorf("a peer's list of %d items", n)
		return 0
	}
	return n
}
