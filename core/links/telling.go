package links

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/tcp"
)

// Carried says what each rail to the process has carried.
func (f *Far) Carried() string { return railTexts(f.link.Rails()) }

// railTexts has a text for each rail, of all its sockets.
func railTexts(rails []tcp.RailState) string {
	var texts []string
	for path := range tcp.MaxPaths {
		of := slices.DeleteFunc(slices.Clone(rails), func(s tcp.RailState) bool { return s.Path != path })
		if len(of) > 0 {
			texts = append(texts, railText(path, of))
		}
	}
	return strings.Join(texts, ", ")
}

func railText(path int, sockets []tcp.RailState) string {
	var all tcp.RailState
	var each, lost []string
	for _, s := range sockets {
		all.Sent, all.Direct, all.Rate = all.Sent+s.Sent, all.Direct+s.Direct, all.Rate+s.Rate
		each = append(each, fmt.Sprintf("%.1f", float64(s.Sent)/1e6))
		if !s.Alive {
			lost = append(lost, strconv.Itoa(s.Socket))
		}
	}
	text := fmt.Sprintf("%.1f MB by rail %d", float64(all.Sent)/1e6, path)
	if len(sockets) > 1 {
		text += fmt.Sprintf(" (its sockets: %s)", strings.Join(each, ", "))
	}
	if all.Direct > 0 {
		text += fmt.Sprintf(" (%.1f MB without a copy)", float64(all.Direct)/1e6)
	}
	if all.Rate > 0 {
		text += fmt.Sprintf(" (%.1f MB/s of late)", float64(all.Rate)/1e6)
	}
	switch {
	case len(lost) == len(sockets):
		text += ", which has failed"
	case lost != nil:
		text += ", of which failed: socket " + strings.Join(lost, ", ")
	}
	return text
}

// railName is what the log calls one of a link's connections.
func railName(rail int) string {
	path, socket := tcp.Place(rail)
	if socket == 0 {
		return fmt.Sprintf("rail %d", path)
	}
	return fmt.Sprintf("socket %d of rail %d", socket, path)
}

// railLost is told when a connection failed and others go on, or another is to be made.
func (f *Far) railLost(rail int, err error) {
	if cause := errors.Unwrap(err); cause != nil { // of a peer's end it would say more than is known
		err = cause
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		f.aid.ended.Store(int32(rail) + 1)
		if !f.link.Open() {
			f.last.Store(int32(rail) + 1)
		}
	}
	label, rank := f.label()
	path, socket := tcp.Place(rail)
	switch {
	case rank >= 0 && !f.link.Open():
		log.Warn("communicator %s: rail %d to rank %d failed, the last one, and a new connection is made: %v", label, path, rank, err)
	case rank < 0: // no communicator needs it: the other process has ended, or is about to
		log.Info(log.Net, "%s to a process that shares no communicator any more failed: %v", railName(rail), err)
	case f.goesOn(path):
		f.say("socket %d of rail %d to rank %d failed, the rail's others take its place: %v", socket, path, rank, err)
	default:
		log.Warn("communicator %s: rail %d to rank %d failed, others take its place: %v", label, path, rank, err)
	}
}

// goesOn reports whether any connection of a path has not failed.
func (f *Far) goesOn(path int) bool {
	for k := range tcp.MaxSockets {
		if f.link.Live(tcp.Rail(path, k)) {
			return true
		}
	}
	return false
}
