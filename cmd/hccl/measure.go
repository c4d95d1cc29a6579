package main

import (
	"os"
	"unsafe"
)

// runner is one rank of a sweep.
type runner struct {
	*job
	page       *page
	rank       int
	processors int
	comm       *communicator
	table      *table // rank 0's
	send, recv []byte // the larger of the two hold both in place
	anyWrong   bool
}

// sweep makes the communicator, measures every size and prints the table at rank 0.
func (r *runner) sweep() error {
	if err := r.join(); err != nil {
		return err
	}
	if r.rank == 0 {
		r.table = &table{out: os.Stdout, job: r.job}
		r.table.head(r.page)
	}
	if err := r.allocate(); err != nil {
		return err
	}
	for bytes := r.least; bytes <= r.most; bytes = r.next(bytes) {
		if err := r.measureSize(bytes); err != nil {
			return err
		}
	}
	r.meet()
	if err := r.comm.destroy(); err != nil {
		return err
	}
	if r.rank == 0 {
		r.table.foot()
	}
	if r.anyWrong {
		return errWrong
	}
	return nil
}

func (r *runner) join() error {
	r.page.of[r.rank].pid = int32(os.Getpid())
	if r.rank == 0 {
		id, err := newUniqueID()
		if err != nil {
			return err
		}
		r.page.id = id
	}
	r.meet()
	comm, err := initRank(r.ranks, r.page.id, r.rank)
	r.comm = comm
	return err
}

func (r *runner) meet() { r.page.barrier(r.ranks, r.processors) }

func (r *runner) next(bytes int) int {
	if r.step > 0 {
		return bytes + r.step
	}
	return max(bytes*r.factor, bytes+1)
}

// parts of the larger buffer; sizes are stated for it, as nccl-tests do.
func (r *runner) parts() int { return max(r.op.sends(r.ranks), r.op.receives(r.ranks)) }

// allocate makes both buffers for the largest size. In place, one of them holds both ends.
func (r *runner) allocate() (err error) {
	if r.send, err = buffer(r.most); err == nil {
		r.recv, err = buffer(r.most)
	}
	return err
}

// layout is where the two ends lie for one measurement, and the length of a part in bytes.
type layout struct {
	part       int
	send, recv []byte
}

func (r *runner) place(bytes int, inPlace bool) layout {
	part := bytes / r.parts() / r.typ.size * r.typ.size
	l := layout{part: part, send: r.send[:part*r.op.sends(r.ranks)], recv: r.recv[:part*r.op.receives(r.ranks)]}
	if inPlace {
		s, d := r.op.offsets(r.rank, r.ranks)
		l.send = r.recv[s*part:][:len(l.send)]
		l.recv = r.recv[d*part:][:len(l.recv)]
	}
	return l
}

func (r *runner) measureSize(bytes int) error {
	row := row{bytes: r.place(bytes, false).part * r.parts()}
	row.count = row.bytes / r.typ.size
	for k := range row.results {
		if k == 1 && !r.op.inPlace {
			break
		}
		got, err := r.measure(r.place(bytes, k == 1))
		if err != nil {
			return err
		}
		row.results[k] = got
		r.anyWrong = r.anyWrong || got.wrong > 0
	}
	if r.rank == 0 {
		r.table.row(row)
	}
	return nil
}

// measure times the calls, then runs one more on fresh data and checks what it did. All ranks return the same result.
func (r *runner) measure(l layout) (result, error) {
	c := call{id: r.op.call, send: start(l.send), recv: start(l.recv), count: l.part / r.typ.size, typ: r.typ.value, red: r.red.value,
		root: r.root}
	r.fill(l)
	r.meet()
	if _, err := r.comm.run(c, r.warmup); err != nil {
		return result{}, err
	}
	r.meet()
	seconds, err := r.comm.run(c, r.iters)
	if err != nil {
		return result{}, err
	}
	mine := &r.page.of[r.rank]
	mine.seconds, mine.wrong = seconds/float64(r.iters), 0
	if r.check {
		r.meet()
		r.fill(l)
		if _, err := r.comm.run(c, 1); err != nil {
			return result{}, err
		}
		mine.wrong = int64(r.wrong(l))
	}
	r.meet()
	return r.gather(), nil
}

// gather joins what the ranks found; the barrier at its end keeps the page until all have read it.
func (r *runner) gather() (g result) {
	g.measured, g.checked = true, r.check
	for k := range r.ranks {
		g.seconds += r.page.of[k].seconds / float64(r.ranks)
		g.wrong += r.page.of[k].wrong
	}
	r.meet()
	return g
}

func start(b []byte) unsafe.Pointer {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Pointer(&b[0])
}

// fill writes what this rank sends, and in the receive buffer what no operation leaves there. Where the two overlap, what is sent
// counts.
func (r *runner) fill(l layout) {
	pattern{0xa5}.fill(l.recv)
	for part := range r.op.sends(r.ranks) {
		if l.part > 0 {
			r.sent(r.rank, part).fill(l.send[part*l.part:][:l.part])
		}
	}
}

func (r *runner) wrong(l layout) (n int) {
	if l.part == 0 || !r.op.fills(r.rank, r.root) {
		return 0
	}
	for part := range r.op.receives(r.ranks) {
		want := r.expected(r.op.from(part, r.rank, r.ranks, r.root))
		n += want.wrong(l.recv[part*l.part:][:l.part], r.typ.size)
	}
	return n
}
