package boot

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What happens beyond a part, where several ids share the ranks out:
//
//	part 0, id 0     0 ─ 1 ─ 2        each part meets at the maker of its id and gathers what its ranks say
//	part 1, id 1     3 ─ 4 ─ 5
//	speakers, id 0   0 ───── 3        the first ranks of the parts do the same at the maker of the first id, with what they gathered
//	the word         0 > 1, 0 > 2     and pass it all on along the connections of their parts, as a binomial tree
//
// A part that fails sends a herald to all makers: the roll calls there fail for the same reason.

const (
	speakerTime = 1500 * time.Millisecond // more than the limit, for a speaker to find out who was missing, and pass it on
	newsTime    = 500 * time.Millisecond  // for heralds and answers to askers
)

// beyond returns what all ranks gave, given that of the part.
func (x *rounds) beyond(blobs [][]byte) ([][]byte, error) {
	at := x.placeOf(x.rank)
	if at == 0 {
		word, err := x.speak(pack(blobs))
		if err != nil {
			x.tell(err)
			return nil, err
		}
		x.word = word
	} else {
		x.before = x.in[bits.Len(uint(at))-1]
		if !x.lim.Deadline.IsZero() {
			x.lim.Deadline = x.lim.Deadline.Add(speakerTime)
		}
	}
	x.lim.lap("other ids")
	if err := x.until(func() bool { return x.pass(at) }); err != nil {
		return nil, err
	}
	x.lim.lap("passing on")
	all, ok := unpack(x.word, x.n)
	if !ok {
		return nil, x.before.garbage() // what a speaker passes on it has looked at
	}
	return all, nil
}

// pass takes the word from the one before in the tree and gives it to those behind; true: all of that is done.
func (x *rounds) pass(at int) bool {
	if x.before != nil {
		x.word = x.before.word
	}
	if x.word == nil {
		return false
	}
	done := true
	for k := bits.Len(uint(at)); k < len(x.out) && at+1<<k < x.size(); k++ {
		l := x.out[k]
		if !l.passed {
			l.passed = true
			l.s.out = append(l.s.out, framed(frameWord, 0, x.word)...)
		}
		done = done && l.s.flush() == nil && l.s.out == nil // an error shows at the next turn
	}
	return done
}

// speak meets the other speakers and returns what all ranks gave.
func (x *rounds) speak(mine []byte) ([]byte, error) {
	c := x.circle
	c.role = speaker
	lim := x.lim
	lim.Lap, lim.Abort = nil, x.hearPart
	m, err := newMeeting(x.makers, x.makers[0], c, x.rank, lim)
	if err != nil {
		return nil, err
	}
	defer m.close()
	m.most = (x.n/x.ids + 1) * (4 + MaxBlob)
	partners, err := m.rollCall()
	if err != nil {
		return nil, m.explain(err)
	}
	y, err := m.begin(partners)
	if err != nil {
		return nil, err
	}
	defer y.close()
	said, err := y.gather(mine)
	if err != nil {
		return nil, err
	}
	for k, b := range said {
		if _, ok := unpack(b, x.first(k+1)-x.first(k)); !ok {
			return nil, (&link{peer: x.first(k)}).garbage()
		}
	}
	return slices.Concat(said...), nil
}

// hearPart is asked while the speaker is away: a rank of its part that has failed says so on their connections.
func (x *rounds) hearPart() error {
	if err := x.lim.aborted(); err != nil {
		return err
	}
	_, err := x.turn()
	return err
}

// explain finds out who is missing in the parts whose speakers have not come.
func (m *meeting) explain(err error) error {
	var absent *AbsentError
	if !errors.As(err, &absent) {
		return err
	}
	found := make([]error, len(absent.Ranks))
	var wg sync.WaitGroup
	for i, r := range absent.Ranks {
		wg.Go(func() { found[i] = m.ask(m.of(r)) })
	}
	wg.Wait()
	var ranks []int
	var other error
	for i, err := range found {
		var there *AbsentError
		switch {
		case errors.As(err, &there):
			ranks = append(ranks, there.Ranks...)
		case err != nil:
			other = err
		default: // all of the part have come: what is missing is the speaker
			ranks = append(ranks, absent.Ranks[i])
		}
	}
	if ranks == nil && other != nil {
		return other
	}
	slices.Sort(ranks)
	return &AbsentError{ranks, m.n, absent.By, m.root}
}

// ask has the maker of a part's id say who of it has not come; nil: all have.
func (m *meeting) ask(part int) error {
	missing, err := m.errand(part, asker, []byte{}) // nobody is to come to who asks
	var used *UsedError
	switch {
	case errors.As(err, &used):
		return nil
	case err != nil:
		return err
	}
	return &AbsentError{missing, m.n, m.rank, m.root}
}

// spreadNews tells all makers that the part has failed, once: by its first rank that is not to blame.
func (m *meeting) spreadNews(err error) {
	f := newsOf(err, m.rank)
	blamed := append(Blamed(err), f.missing...)
	if f.why == whyAborted {
		blamed = append(blamed, m.rank)
	}
	teller := 0
	for teller < m.size()-1 && slices.Contains(blamed, m.rankAt(teller)) {
		teller++
	}
	if m.rank != m.rankAt(teller) {
		return
	}
	m.proclaim(f)
}

// Unable tells the other ranks of the ids that this one cannot come, and why, lest they wait for it until their limit. It takes newsTime at
// most.
func Unable(ids []byte, rank, n int, why error) {
	all, err := parseIDs(ids, n)
	if err != nil || rank < 0 || rank >= n {
		return
	}
	m := &meeting{makers: all, circle: circleOf(rank, n, len(all)), rank: rank}
	m.proclaim(&failed{why: whyGone, rank: rank, text: fmt.Sprintf("rank %d cannot take part: %v", rank, why)})
}

// proclaim tells all makers of a failure.
func (m *meeting) proclaim(f *failed) {
	var wg sync.WaitGroup
	for part := range m.ids {
		wg.Go(func() { _, _ = m.errand(part, herald, f.encode(maxContact)) }) // who cannot be reached waits for its own limit
	}
	wg.Wait()
}

// errand goes to the maker of a part's id for one answer: who is missing there, or why the part has failed.
func (m *meeting) errand(part int, role uint8, news []byte) (missing []int, err error) {
	e := &meeting{id: m.makers[part], makers: m.makers, circle: m.circle, rank: m.first(part), news: news}
	e.role = role
	e.lim.Deadline = time.Now().Add(newsTime)
	c, race, err := e.findRoot()
	if err != nil {
		return nil, &UnreachableError{race.addrs, race.why, e.id.fixed, e.id.left}
	}
	defer c.s.close()
	if c.s.send(c.hello(c.challenge, c.nonce)) != nil {
		return nil, errLost
	}
	for {
		if _, done, err := c.listen(); done || err != nil {
			return c.missing, err
		}
		if err := c.lim.check(); err != nil {
			return nil, err
		}
		pollFor([]unix.PollFd{c.s.pollFd()}, tick)
	}
}
