package main

// span is where a part lies in a buffer, in bytes.
type span struct{ at, len int }

func (s span) in(b []byte) []byte { return b[s.at : s.at+s.len] }

// shape is how one rank's two buffers are divided for one size.
type shape struct {
	unit              int // elements of an even part
	outParts, inParts []span
	send, recv        int // bytes of the two
	sendAt, recvAt    int // in place: where each begins in the common buffer
	common            int // bytes of that
}

// parts of the larger buffer; sizes are stated for it, as nccl-tests do.
func (op *operation) parts(n int) int { return max(op.sends(n), op.receives(n)) }

// length of a rank's part to send, in elements.
func (op *operation) length(unit, rank, part int) int {
	if op.weight == nil {
		return unit
	}
	return unit * op.weight(rank, part) / 3
}

// received is the length of what comes from an origin.
func (op *operation) received(unit int, o origin) int {
	if o.sum {
		o.rank = 0 // all ranks' parts that are reduced together are equally long
	}
	return op.length(unit, o.rank, o.part)
}

// shape divides the buffers of a rank for a size in bytes of the larger of them.
func (op *operation) shape(bytes, elementSize, me, n, root int) shape {
	s := shape{unit: bytes / op.parts(n) / elementSize}
	lay := func(count int, length func(part int) int) (spans []span, end int) {
		for p := range count {
			l := length(p) * elementSize
			spans = append(spans, span{end, l})
			end += l
		}
		return spans, end
	}
	s.outParts, s.send = lay(op.sends(n), func(p int) int { return op.length(s.unit, me, p) })
	s.inParts, s.recv = lay(op.receives(n), func(p int) int { return op.received(s.unit, op.from(p, me, n, root)) })
	if op.apart {
		s.recvAt, s.common = s.send, s.send+s.recv
		return s
	}
	larger := s.outParts
	if len(s.inParts) > len(s.outParts) {
		larger = s.inParts
	}
	sendPart, recvPart := op.offsets(me, n)
	s.sendAt, s.recvAt, s.common = larger[sendPart].at, larger[recvPart].at, max(s.send, s.recv)
	return s
}

// stated is the size of a row, in bytes: the largest buffer of any rank; and the count of its largest part.
func (op *operation) stated(bytes, elementSize, n, root int) (size, count int) {
	if op.weight == nil {
		unit := bytes / op.parts(n) / elementSize
		return unit * op.parts(n) * elementSize, unit
	}
	for me := range n {
		s := op.shape(bytes, elementSize, me, n, root)
		size = max(size, s.send, s.recv)
		for _, p := range s.outParts {
			count = max(count, p.len/elementSize)
		}
	}
	return size, count
}
