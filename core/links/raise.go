package links

import (
	"fmt"
	"net/netip"
	"time"

	"hccl.dev/hccl/core/boot"
)

// raise makes the first connection if one is wanted, or has the other process make it.
func (f *Far) raise(now time.Time) (pace time.Duration) {
	if !f.wanted.Load() || f.link.Parts() || f.call == nil && now.Before(f.again) {
		return tendTime
	}
	if f.began.IsZero() {
		f.began = now
	}
	if f.call == nil {
		purpose := uint8(purposeKnock)
		if f.dials {
			purpose = purposeRail
		}
		f.called = now
		f.call = boot.Reach(f.doors(), doorOf(f.name, f.secret), f.secret[:], purpose)
	}
	conn, err := f.call.Turn()
	switch {
	case conn.FD >= 0 && f.dials:
		f.last.Store(0)
		f.add(0, conn)
		f.hangUp()
	case conn.FD >= 0: // it has heard
		boot.Close(conn.FD)
		f.hangUp()
		f.again = now.Add(knockTime)
	case f.call.Refused():
		f.fail(fmt.Errorf("it listens no more at %s", f.call.Reasons()))
	case now.Sub(f.began) > f.terms.Patience:
		f.fail(fmt.Errorf("it cannot be reached for %v at %s; raise HCCL_PEER_TIMEOUT if the network needs longer", f.terms.Patience,
			f.call.Reasons()))
	case f.last.Load() > 0 && now.Sub(f.called) > attemptTime: // that path is gone as well
		f.last.Store(0)
		f.hangUp()
	case err != nil:
		f.mu.Lock()
		f.why = f.call.Reasons()
		f.mu.Unlock()
	}
	if now.Sub(f.began) < promptly {
		return promptTime
	}
	return attendTime
}

// doors are where the process listens: once the other end has let go of the last connection the address of that one alone, as its path was
// there just now. So a process that has ended is not waited for at addresses whose paths are gone.
func (f *Far) doors() []netip.AddrPort {
	if k := f.last.Load(); k > 0 {
		return []netip.AddrPort{netip.AddrPortFrom(f.carried[k-1][1], f.addrs[0].Port())}
	}
	return f.addrs
}
