package proto

// portKey names a port of the machine.
type portKey struct {
	writer, reader int32 // reader is -1 for a port that all read
	channel        int32
}

// queue is a port: the values of all slices so far, where each slice ends, and how many each reader has taken.
type queue struct {
	vals  []*value
	ends  []int
	taken []int // by rank, or one entry where there is one reader
	one   int   // the only reader, -1: all but the writer
	low   int   // no reader has taken fewer
}

func (q *queue) reads(rank int) *int {
	if q.one >= 0 {
		return &q.taken[0]
	}
	return &q.taken[rank]
}

// behind is the reader that has taken the fewest slices.
func (q *queue) behind() (reader, taken int) {
	if q.one >= 0 {
		return q.one, q.taken[0]
	}
	for r, n := range q.taken {
		if n < q.taken[reader] {
			reader = r
		}
	}
	return reader, q.taken[reader]
}

// full reports whether slots slices wait for a reader.
func (q *queue) full(slots int) bool {
	if len(q.ends)-q.low >= slots {
		_, q.low = q.behind()
	}
	return len(q.ends)-q.low >= slots
}

func (q *queue) push(v []*value) {
	q.vals = append(q.vals, v...)
	q.ends = append(q.ends, len(q.vals))
}

// pop takes the next slice for a reader.
func (q *queue) pop(rank int) []*value {
	i := q.reads(rank)
	lo := 0
	if *i > 0 {
		lo = q.ends[*i-1]
	}
	v := q.vals[lo:q.ends[*i]]
	*i++
	return v
}
