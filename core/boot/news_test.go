package boot

import (
	"errors"
	"testing"
	"time"
)

// farewell is what rank 0 says of rank 2, framed.
func farewell() []byte {
	f := newsOf(&RankError{2, "rank 2 went away"}, 0)
	return framed(frameFail, 0, f.encode(maxReason))
}

func wantNews(t *testing.T, when string, err error) {
	t.Helper()
	var failed *RankError
	if !errors.As(err, &failed) || failed.Rank != 2 {
		t.Errorf("%s: %v", when, err)
	}
}

// hears reads from a connection to rank 0 until that has said something or ends.
func hears(s *stream) error {
	l := &link{of: &meeting{rank: 1}, peer: 0, s: s}
	for lim := within(10); lim.check() == nil; pollFor(nil, time.Millisecond) {
		if err := l.read(maxReason); err != nil {
			return err
		}
	}
	return errDeadline
}

// A rank that has failed tells why to all that connected, or connect later, wherever they are. Those who want something else are refused.
func TestLateRanksHearWhy(t *testing.T) {
	nearAndApart(t, func(t *testing.T) {
		svc := testService(t)
		key, secret := svc.NewKey(), []byte("secret")
		box := svc.Expect(key, secret)
		arrive := func() *stream {
			d := &dialing{addrs: svc.Addrs(), key: key, secret: secret, from: 1, here: svc, bell: -1}
			for lim := within(10); lim.check() == nil; pollFor(d.pollFds(nil), d.pause()) {
				if s, err := d.turn(); s != nil {
					return s
				} else if err != nil {
					t.Fatal(err)
				}
			}
			t.Fatal("nothing answers")
			return nil
		}
		before := arrive()
		box.answer(purposeMeet, farewell())
		after := arrive()
		box.Close()
		late := arrive()
		for when, s := range map[string]*stream{"before": before, "after": after, "late": late} {
			wantNews(t, when, hears(s))
			s.close()
		}
		if _, err := Dial(svc.Addrs(), key, secret, 1, 7, within(60)); err == nil {
			t.Error("connected for a purpose of which nothing is known")
		}
		box.forget()
		if !svc.closed(key, purposeMeet) {
			t.Error("answers for ever")
		}
	})
}

// A rank whose neighbours have gone believes the one that says why: also where that was not read yet, and whatever link it came on.
func TestNewsGoBeforeSilence(t *testing.T) {
	for when, told := range map[string]int{"by the neighbour that takes nothing more": 0, "by another in the same turn": 2} {
		m := &meeting{circle: circleOf(1, 4, 1), rank: 1, most: MaxBlob}
		x := &rounds{meeting: m, held: [][]byte{{1}}}
		for _, peer := range []int{2, 3, 0, 3} { // two out, two in
			mine, theirs := pair(-1)
			if len(x.all) == told {
				_ = theirs.give(farewell())
			}
			theirs.close()
			x.all = append(x.all, &link{of: m, peer: peer, s: &stream{fd: -1, near: mine}})
		}
		x.out, x.in = x.all[:2], x.all[2:]
		for _, l := range x.out {
			l.dial = &dialing{}
		}
		x.all[told].peer = 0
		wantNews(t, when, x.talk())
	}
}
