package tcp

import (
	"sync/atomic"

	"hccl.dev/hccl/proto"
)

// flowTable finds the flows of one direction between two ranks. Rows come with the first flow of a kind: most peers of a large
// communicator never exchange anything.
type flowTable[F any] struct {
	rows [proto.Msg + 1]atomic.Pointer[[MaxChannels]atomic.Pointer[F]]
}

// find returns nil for a flow that nobody opened or wrote to.
func (t *flowTable[F]) find(kind proto.Kind, channel int) *F {
	row := t.rows[kind].Load()
	if row == nil {
		return nil
	}
	return row[channel].Load()
}

// open makes the flow if it is not there. The opener of a port and the first frame may come at once: the first wins.
func (t *flowTable[F]) open(kind proto.Kind, channel int) *F {
	row := t.rows[kind].Load()
	if row == nil {
		t.rows[kind].CompareAndSwap(nil, new([MaxChannels]atomic.Pointer[F]))
		row = t.rows[kind].Load()
	}
	f := row[channel].Load()
	if f == nil {
		row[channel].CompareAndSwap(nil, new(F))
		f = row[channel].Load()
	}
	return f
}

// each calls do for every flow there is.
func (t *flowTable[F]) each(do func(*F)) {
	for k := range t.rows {
		row := t.rows[k].Load()
		for c := 0; row != nil && c < MaxChannels; c++ {
			if f := row[c].Load(); f != nil {
				do(f)
			}
		}
	}
}
