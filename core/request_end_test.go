package core

import (
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// A receive can be taken back until a message has met it, or runs out of its own time; the communicator goes on in both cases.
func TestRequestsTakenBack(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.comms[0]
		for _, source := range []int{1, AnySource, 0} {
			r := starts(t, c, tagged(coll.Recv, make([]byte, 4), source, 3))
			r.Cancel()
			wantError(t, WaitAll([]*Request{r}, patience), InvalidUsage, "was cancelled")
			r.Cancel()
			late := tagged(coll.Recv, make([]byte, 4), source, 4)
			late.Limit = 40 * time.Millisecond
			wantError(t, WaitAll([]*Request{starts(t, c, late)}, patience), Timeout, "rank 0 gave up", "recv of 4 elements", "tag 4")
		}
		w.must(w.each(func(r int) error { return do(w.comms[r], &adding(2, 100, 1).part(r).call) }))
		w.destroy()
	})
}

// What stands behind work that a stream holds up can be taken back, and runs out of its own time, as what is under way.
func TestRequestsBehindStreams(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.comms[0]
		s := newStream(t)
		open := gate(s)
		defer open()
		queued := adding(2, 100, 1).part(0)
		held.Store(queued, nil)
		if err := do(c, queued.on(s)); err != nil {
			t.Fatal(err)
		}
		r := starts(t, c, tagged(coll.Recv, make([]byte, 4), AnySource, 3))
		r.Cancel()
		wantError(t, WaitAll([]*Request{r}, patience), InvalidUsage, "was cancelled")
		late := tagged(coll.Recv, make([]byte, 4), 1, 4)
		late.Limit = 40 * time.Millisecond
		wantError(t, WaitAll([]*Request{starts(t, c, late)}, patience), Timeout, "rank 0 gave up", "tag 4", "behind work that is queued")
		sum := adding(2, 100, 1).part(0)
		held.Store(sum, nil)
		sum.call.Limit = 40 * time.Millisecond
		wantError(t, WaitAll([]*Request{starts(t, c, sum.call)}, patience), Timeout, "rank 0 gave up", "all-reduce of 100", "behind work")
		_, err := c.Start(&sum.call)
		wantError(t, err, Timeout, "rank 0 gave up")
		w.abort()
	})
}

// A receive may run out of its time before it is in the turn at all; that too ends it alone.
func TestRequestLateBeforeItsTurn(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.comms[0]
		late := tagged(coll.Recv, make([]byte, 4), AnySource, 3)
		late.Limit = 40 * time.Millisecond
		c.hot.Lock()
		r := starts(t, c, late)
		c.overdue(time.Now().Add(time.Hour))
		c.hot.Unlock()
		wantError(t, WaitAll([]*Request{r}, patience), Timeout, "rank 0 gave up", "no rank has sent what it takes")
		w.must(w.each(func(r int) error { return do(w.comms[r], &adding(2, 100, 1).part(r).call) }))
		w.destroy()
	})
}

// A collective that runs out of its own time names the absent and fails the communicator, and with it all that was started.
func TestRequestRunsOutOfTime(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		c := w.comms[0]
		recv := starts(t, c, tagged(coll.Recv, make([]byte, 4), 1, 0))
		call := adding(3, 1000, 1).part(0)
		held.Store(call, nil)
		call.call.Limit = 300 * time.Millisecond
		sum := starts(t, c, call.call)
		wantError(t, WaitAll([]*Request{sum}, patience), Timeout, "rank 0 gave up", "all-reduce", "missing: ranks 1, 2")
		wantError(t, WaitAll([]*Request{recv}, patience), Timeout, "missing: ranks 1, 2")
		_, err := c.Start(&call.call)
		wantError(t, err, Timeout, "rank 0 gave up")
		w.abort()
	})
}

// Abort and Destroy end all requests, with an error that says so, and so do those of another rank, which is named.
func TestRequestsEndWithTheCommunicator(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, how := range []string{"aborted", "destroyed"} {
			w := newWorld(t, 2)
			var list [2][]*Request
			for r, c := range w.comms {
				p := adding(2, 100000, 1).part(r)
				held.Store(p, nil)
				list[r] = append(list[r], starts(t, c, tagged(coll.Recv, make([]byte, 4), 1-r, 1)))
				if r == 0 { // the other rank never calls it
					list[r] = append(list[r], starts(t, c, p.call))
				}
				list[r] = append(list[r], starts(t, c, tagged(coll.Recv, make([]byte, 4), AnySource, 2)))
			}
			end := (*Comm).Abort
			if how == "destroyed" {
				end = (*Comm).Destroy
			}
			testkit.Within(t, patience, "the end of rank 1", func() {
				if err := end(w.comms[1]); err != nil {
					t.Error(err)
				}
			})
			for k, r := range list[1] {
				wantError(t, WaitAll([]*Request{r}, patience), InvalidUsage, how)
				wantError(t, WaitAll([]*Request{list[0][k]}, patience), RemoteError, "rank 1 has")
			}
			w.abort()
		}
	})
}

// What cannot be done is refused at once.
func TestRequestsRefused(t *testing.T) {
	w := newWorld(t, 2)
	p := adding(2, 10, 1).part(0)
	p.call.Red, p.call.Type = coll.Xor, coll.Float32
	_, err := w.comms[0].Start(&p.call)
	wantError(t, err, InvalidArgument, "xor is not defined")
	c := w.comms[0]
	w.destroy()
	_, err = c.Start(&p.call)
	wantError(t, err, InvalidUsage, "aborted or destroyed")
}

// The communicator's limit holds for requests that have none of their own. What it ends is named by the request that waits.
func TestRequestsAndTheCommunicatorsLimit(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.comms[0]
		c.SetLimit(60 * time.Millisecond)
		patient := tagged(coll.Recv, make([]byte, 4), AnySource, 1)
		patient.Limit = NoLimit
		r := starts(t, c, patient)
		if err := WaitAll([]*Request{r}, 300*time.Millisecond); err != errInProgress {
			t.Errorf("a receive without limit: %v", err)
		}
		other := starts(t, c, tagged(coll.Recv, make([]byte, 5), 1, 2))
		wantError(t, WaitAll([]*Request{other, r}, patience), Timeout, "rank 0 gave up")
		wantError(t, r.Err(), Timeout, "rank 0 gave up")
		w.abort()
	})
}

// A call that runs out of time blames the rank that it waits for, and not that of a request.
func TestLimitBlamesTheRightRank(t *testing.T) {
	w := newWorld(t, 3)
	r := starts(t, w.comms[0], tagged(coll.Recv, make([]byte, 4), 1, 1))
	m := tagged(coll.Recv, make([]byte, 4), 2, 1)
	m.Limit = 50 * time.Millisecond
	wantError(t, do(w.comms[0], &m), Timeout, "waiting for rank 2")
	if r.Err() != errInProgress {
		t.Errorf("the request ended: %v", r.Err())
	}
	w.abort()
	wantError(t, WaitAll([]*Request{r}, patience), InvalidUsage, "aborted")
}
