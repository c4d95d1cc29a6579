package hccl

import (
	"time"

	"hccl.dev/hccl/core"
)

// Event is a point in a stream, which others can wait for: goroutines by Done, streams by Wait. The zero Event is ready, was never
// recorded, and counts as reached. It must not be copied.
type Event struct{ core core.Event }

// Record puts the event behind what is queued on s now. Who waits already keeps waiting for what it was recorded behind before.
func (e *Event) Record(s *Stream) { e.core.Record(&s.core) }

// Done is closed when what the event was last recorded behind is done, in order or with an error, which Synchronize tells. Slices of
// operations before it are the program's again.
//
//	select {
//	case <-e.Done():
//	case <-time.After(time.Second): // goes on; nothing is aborted
//	}
func (e *Event) Done() <-chan struct{} { return e.core.Done() }

// Since is the time from start to e, both of which must have been reached.
func (e *Event) Since(start *Event) (time.Duration, error) {
	d, err := e.core.Since(&start.core)
	if core.ResultOf(err) == core.InProgress {
		return 0, &Error{Kind: ErrUsage, Text: "Since: one of the events has not been reached yet: wait for its Done"}
	}
	return d, failure(err)
}
