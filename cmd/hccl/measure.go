package main

import (
	"fmt"
	"unsafe"
)

// runner is one thread of a run, with the ranks that it holds.
type runner struct {
	*job
	page       *page
	hub        *hub // of this process, where others are elsewhere; used by its first thread alone
	first      int  // rank of the first held
	thread     int  // within the processes that share the page
	threads    int  // that share the page
	processors int
	comms      []communicator
	pairs      []pair // for each rank that is held
	align      program
	table      *output // rank 0's
	anyWrong   bool
}

// pair is a rank's memory: both buffers, the second of which holds both in place, and the lists of counts of the V forms.
type pair struct{ send, recv, lists []byte }

// sweep makes the communicators, measures every subject at every size and tells the results at rank 0.
func (r *runner) sweep() error {
	if r.probe != nil {
		return r.probePairs()
	}
	if err := r.join(); err != nil {
		return err
	}
	if r.first == 0 {
		r.table = newOutput(r.job, r.page)
	}
	if err := r.work(); err != nil {
		return err
	}
	if err := r.together(); err != nil {
		return err
	}
	for _, c := range r.comms {
		if err := c.destroy(); err != nil {
			return err
		}
	}
	if r.table != nil {
		if err := r.table.foot(); err != nil {
			return err
		}
	}
	if r.anyWrong {
		return errWrong
	}
	return nil
}

func (r *runner) work() error {
	if r.mix != nil {
		return r.runMix()
	}
	if err := r.allocate(); err != nil {
		return err
	}
	for k := range r.subjects {
		for _, bytes := range r.sizes() {
			if err := r.measureSize(&r.subjects[k], bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// allocate makes the buffers for the largest size.
func (r *runner) allocate() error {
	double := 1
	if r.subjects[0].op.apart {
		double = 2
	}
	for range r.held {
		p, err := r.pair(r.most, double*r.most)
		if err != nil {
			return err
		}
		r.pairs = append(r.pairs, p)
	}
	return nil
}

func (r *runner) pair(send, recv int) (p pair, err error) {
	get := buffer
	if r.registered {
		get = libraryMemory
	}
	if p.lists, err = buffer(16 * r.ranks); err == nil {
		p.send, err = get(send)
	}
	if err == nil {
		p.recv, err = get(recv)
	}
	return p, err
}

func (r *runner) measureSize(s *subject, bytes int) (err error) {
	row := row{subject: s}
	row.bytes, row.count = s.op.stated(bytes, s.typ.size, r.ranks, s.root)
	if r.table != nil {
		r.table.progress.show(fmt.Sprintf("%s %s", s.op.name, sizeText(row.bytes)))
	}
	watch := r.patient(r.first, fmt.Sprintf("%s of %d bytes", s.op.name, row.bytes))
	for k := range row.results {
		if row.results[k], err = r.measure(r.stage(s, bytes, r.pairs, k == 1)); err != nil {
			return err
		}
		r.anyWrong = r.anyWrong || row.results[k].wrong > 0
	}
	if watch != nil {
		watch.Stop()
	}
	if r.table != nil {
		r.table.row(row)
	}
	return nil
}

// measure times the calls, then runs more on fresh data and checks what they did. All ranks return the same result.
func (r *runner) measure(s *stage) (result, error) {
	s.fill()
	iters, err := r.warm(s)
	if err != nil {
		return result{}, err
	}
	seconds, samples, err := r.time(s.program, iters)
	if err != nil {
		return result{}, err
	}
	mine := found{seconds: seconds / float64(iters*r.fold)}
	mine.p50, mine.p99 = percentiles(samples, float64(r.fold))
	return r.check(s, mine, iters)
}

// warm makes the first calls, and says how many are to be timed: in throughput mode so many as take the time, by rank 0's clock.
func (r *runner) warm(s *stage) (int, error) {
	if err := r.abreast(); err != nil {
		return 0, err
	}
	if !r.throughput {
		_, err := s.program.run(r.warmup, nil)
		return r.iters, err
	}
	for turns := max(r.warmup, 1); ; turns *= 4 {
		seconds, err := s.program.run(turns, nil)
		if err == nil {
			seconds, err = r.rankZero(seconds)
		}
		if err != nil || seconds > r.seconds/20 || turns > 1<<20 { // few calls tell little
			return int(min(max(r.seconds/max(seconds, 1e-9)*float64(turns), 1), 1<<30)), err
		}
	}
}

// rankZero gives all ranks rank 0's number, so that they decide alike.
func (r *runner) rankZero(seconds float64) (float64, error) {
	r.page.of[r.first].seconds = seconds
	if err := r.together(); err != nil {
		return 0, err
	}
	zero := r.page.of[0].seconds
	return zero, r.together()
}

// time repeats a program and gives the seconds of all its calls, and of each where that was asked for or they are apart.
func (r *runner) time(p program, iters int) (seconds float64, samples []float64, err error) {
	if r.percentiles {
		samples = make([]float64, iters)
	}
	if err := r.abreast(); err != nil || !r.aligned {
		if err == nil {
			seconds, err = p.run(iters, samples)
		}
		return seconds, samples, err
	}
	for k := range iters {
		if err := r.abreast(); err != nil {
			return 0, nil, err
		}
		each, err := p.run(1, nil)
		if err != nil {
			return 0, nil, err
		}
		seconds += each
		if samples != nil {
			samples[k] = each
		}
	}
	return seconds, samples, nil
}

// check runs the calls whose results are looked at, and joins what all ranks found.
func (r *runner) check(s *stage, mine found, iters int) (result, error) {
	wrong := make([]int64, r.held)
	for range r.checks {
		if err := r.together(); err != nil { // none writes what another still reads
			return result{}, err
		}
		s.fill()
		if _, err := s.once.run(1, nil); err != nil {
			return result{}, err
		}
		for k := range wrong {
			wrong[k] = max(wrong[k], int64(s.places[k].wrong()))
		}
	}
	for k := range r.held {
		f := &r.page.of[r.first+k]
		f.seconds, f.p50, f.p99, f.wrong = mine.seconds, mine.p50, mine.p99, wrong[k]
	}
	if err := r.together(); err != nil {
		return result{}, err
	}
	g := r.joined()
	g.iters = iters
	return g, r.together() // the page stays until all have read it
}

func start(b []byte) unsafe.Pointer {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Pointer(&b[0])
}
