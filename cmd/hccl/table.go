package main

import (
	"fmt"
	"io"
	"strings"
)

// table prints results in the columns of nccl-tests, so that scripts which read those can read these. Lines that begin with # are
// for people, and have the same form there.
type table struct {
	out io.Writer
	job *job
}

// result is what one measurement gave, over all ranks. Seconds are those of one call.
type result struct {
	checked  bool
	seconds  float64
	p50, p99 float64
	wrong    int64 // elements, all ranks
	iters    int
}

// row is one size: with two buffers, then in place. The calls of a mix have the first half only.
type row struct {
	*subject
	bytes, count int
	times        int // of a mix's step; 0 elsewhere
	results      [2]result
}

// halves that were measured.
func (w *row) halves() []result {
	if w.times > 0 {
		return w.results[:1]
	}
	return w.results[:]
}

// bandwidths are algbw and busbw, in 10^9 bytes per second.
func (w *row) bandwidths(g result) (alg, bus float64) {
	if g.seconds > 0 {
		alg = float64(w.bytes) / g.seconds / 1e9
	}
	return alg, alg * w.op.factor(w.ranks)
}

func (t *table) head(p *page) {
	j := t.job
	step, how := j.factor, "factor"
	if step < 2 {
		step, how = j.step, "bytes"
	}
	t.print("# nThread %d nGpus %d minBytes %d maxBytes %d step: %d(%s) warmup iters: %d iters: %d agg iters: %d validation: %d graph: 0",
		j.threads, j.held, j.least, j.most, step, how, j.warmup, j.iters, j.fold, j.checks)
	if j.aligned {
		t.print("# Blocking Enabled: wait for completion and barrier after each collective")
	}
	t.print("#")
	t.print("# Using devices")
	for r := range j.ranks {
		f := &p.of[r]
		t.print("#  Rank %2d Group %2d Pid %6d on %10s device %2d [0x00] host memory", r, 0, f.pid, f.hostName(), f.local)
	}
	t.print("#")
	t.print("# hccl perf %s: %d ranks, %s; hccl perf --help explains the columns", j.title, j.ranks, libraryText())
	t.print("#")
	t.legend()
}

func libraryText() string {
	version, err := libraryVersion()
	if err != nil {
		return "NCCL interface unknown"
	}
	return "NCCL interface " + version
}

// legend is the head of the columns.
func (t *table) legend() {
	blank := fmt.Sprintf("# %10s  %12s  %8s  %6s  %6s", "", "", "", "", "")
	time := "time"
	if t.job.cpuTime {
		time = "cputime"
	}
	names := fmt.Sprintf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root")
	units := fmt.Sprintf("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
	half := fmt.Sprintf("  %7s  %6s  %6s %6s", time, "algbw", "busbw", "#wrong")
	unit := fmt.Sprintf("  %7s  %6s  %6s  %5s", "(us)", "(GB/s)", "(GB/s)", "")
	if t.job.mix != nil {
		t.print("%s%s%s", names, half, t.moreNames(1)+"    times  operation")
		t.print("%s%s%s", units, unit, t.moreUnits(1))
		return
	}
	t.print("%s           out-of-place                       in-place", blank)
	t.print("%s%s%s%s", names, half, half, t.moreNames(2))
	t.print("%s%s%s%s", units, unit, unit, t.moreUnits(2))
}

// moreNames are the columns that were asked for. They stand after the others, so that the others keep their places.
func (t *table) moreNames(halves int) (text string) {
	if t.job.percentiles {
		text = strings.Repeat(fmt.Sprintf("  %7s  %7s", "p50", "p99"), halves)
	}
	if t.job.throughput {
		text += strings.Repeat(fmt.Sprintf("  %9s", "calls/s"), halves)
	}
	return text
}

func (t *table) moreUnits(halves int) string {
	if !t.job.percentiles {
		return ""
	}
	return strings.Repeat(fmt.Sprintf("  %7s  %7s", "(us)", "(us)"), halves)
}

func (t *table) row(w *row) {
	line := fmt.Sprintf("%12d  %12d  %8s  %6s  %6d", w.bytes, w.count, w.typ.name, w.red.name, w.rootShown())
	more, rate := "", ""
	for _, g := range w.halves() {
		alg, bus := w.bandwidths(g)
		line += fmt.Sprintf("  %7s  %6.2f  %6.2f  %5s", digits(g.seconds*1e6), alg, bus, g.wrongText())
		more += fmt.Sprintf("  %7s  %7s", digits(g.p50*1e6), digits(g.p99*1e6))
		rate += fmt.Sprintf("  %9.0f", 1/max(g.seconds, 1e-9))
	}
	if t.job.percentiles {
		line += more
	}
	if t.job.throughput {
		line += rate
	}
	if w.times > 0 {
		line += fmt.Sprintf("  %7d  %s", w.times, w.op.name)
	}
	t.print("%s", line)
}

func (g *result) wrongText() string {
	if !g.checked {
		return "N/A"
	}
	return fmt.Sprint(g.wrong)
}

// digits keeps a time within its column.
func digits(us float64) string {
	switch {
	case us < 100:
		return fmt.Sprintf("%.2f", us)
	case us < 10000:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

func (t *table) foot(s *summary) {
	verdict := "OK"
	if s.wrong > 0 {
		verdict = "FAILED"
	}
	if step := s.step; step != nil {
		t.print("# Step of %d calls: %s us, p50 %s, p99 %s, of %d", s.calls, digits(step.seconds*1e6), digits(step.p50*1e6),
			digits(step.p99*1e6), step.iters)
	}
	t.print("# Out of bounds values : %d %s", s.wrong, verdict)
	t.print("# Avg bus bandwidth    : %.6g", s.average())
	t.print("#")
}

// print writes a line at once: a sweep that hangs has shown what it measured before.
func (t *table) print(format string, args ...any) {
	_, _ = fmt.Fprintln(t.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}
