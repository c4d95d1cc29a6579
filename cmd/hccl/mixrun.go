package main

import "time"

// runMix repeats a step: every line of the mix so often as it says, in the order of the file, as a training step makes its calls.
// Each line has buffers of its own.
func (r *runner) runMix() error {
	stages, err := r.mixStages()
	if err != nil {
		return err
	}
	watch := r.patient(r.first, "the mix")
	for range r.warmup {
		if _, err := r.step(stages, nil); err != nil {
			return err
		}
	}
	if err := r.abreast(); err != nil {
		return err
	}
	lines := make([][]float64, len(stages)) // seconds of each line in each step
	steps := make([]float64, r.iters)
	for k := range steps {
		if steps[k], err = r.step(stages, lines); err != nil {
			return err
		}
	}
	if err := r.mixRows(stages, lines); err != nil {
		return err
	}
	if watch != nil {
		watch.Stop()
	}
	return r.mixStep(steps)
}

func (r *runner) mixStages() (stages []*stage, err error) {
	for k := range r.mix {
		e := &r.mix[k]
		var pairs []pair
		for range r.held {
			p, err := r.pair(e.bytes, e.bytes)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, p)
		}
		st := r.stage(&e.subject, e.bytes, pairs, false)
		st.fill()
		stages = append(stages, st)
	}
	return stages, nil
}

// step runs the list once, adds the seconds of each line to its list and returns those of the step.
func (r *runner) step(stages []*stage, lines [][]float64) (float64, error) {
	if r.aligned {
		if err := r.abreast(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	for k, st := range stages {
		seconds, err := st.program.run(r.mix[k].times, nil)
		if err != nil {
			return 0, err
		}
		if lines != nil {
			lines[k] = append(lines[k], seconds)
		}
	}
	return time.Since(began).Seconds(), nil
}

// mixRows checks each line and tells its mean; percentiles are those of the steps' means.
func (r *runner) mixRows(stages []*stage, lines [][]float64) error {
	for k, st := range stages {
		e := &r.mix[k]
		calls := r.iters * e.times
		w := row{subject: &e.subject, times: e.times}
		w.bytes, w.count = e.op.stated(e.bytes, e.typ.size, r.ranks, e.root)
		mine := found{seconds: sum(lines[k]) / float64(calls*r.fold)}
		mine.p50, mine.p99 = percentiles(lines[k], float64(e.times*r.fold))
		got, err := r.check(st, mine, calls)
		if err != nil {
			return err
		}
		w.results[0] = got
		r.anyWrong = r.anyWrong || got.wrong > 0
		if r.table != nil {
			r.table.row(w)
		}
	}
	return nil
}

// mixStep tells the time of a whole step.
func (r *runner) mixStep(steps []float64) error {
	mine := &r.page.of[r.first]
	mine.seconds, mine.wrong = sum(steps)/float64(len(steps)), 0
	mine.p50, mine.p99 = percentiles(steps, 1)
	for k := 1; k < r.held; k++ {
		f := &r.page.of[r.first+k]
		f.seconds, f.p50, f.p99, f.wrong = mine.seconds, mine.p50, mine.p99, 0
	}
	if err := r.together(); err != nil {
		return err
	}
	if r.table != nil {
		g := r.joined()
		g.iters = len(steps)
		r.table.step = &g
		for k := range r.mix {
			r.table.calls += r.mix[k].times
		}
	}
	return r.together()
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}
