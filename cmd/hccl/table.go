package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// table prints a sweep in the columns of nccl-tests, so that scripts which read those can read these. Lines that begin with # are
// for people.
type table struct {
	out   io.Writer
	job   *job
	sum   float64 // of bus bandwidths
	terms int
	wrong int64
}

// result is what one measurement gave, over all ranks.
type result struct {
	measured, checked bool
	seconds           float64 // per call, mean of the ranks
	wrong             int64   // elements, all ranks
}

// row is one size: out of place, then in place.
type row struct {
	bytes, count int
	results      [2]result
}

const (
	leftForm  = "%12v  %12v  %8v  %6v  %6v"
	rightForm = "  %7v  %6v  %6v  %5v"
)

func (t *table) head(p *page) {
	j := t.job
	how := "processes"
	if j.threads {
		how = "threads"
	}
	step := fmt.Sprintf("%d(factor)", j.factor)
	if j.step > 0 {
		step = fmt.Sprintf("%d(bytes)", j.step)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	version, err := libraryVersion()
	if err != nil {
		version = "unknown"
	}
	t.print("# hccl perf %s: %d ranks as %s on host memory, NCCL interface %s", j.op.name, j.ranks, how, version)
	t.print("# minBytes %d maxBytes %d step: %s warmup iters: %d iters: %d validate: %d", j.least, j.most, step, j.warmup, j.iters,
		oneIf(j.check))
	t.print("#")
	for r := range j.ranks {
		t.print("#  Rank %2d Pid %6d on %s", r, p.of[r].pid, host)
	}
	t.print("#")
	t.legend()
	left := strings.Repeat(" ", len(fmt.Sprintf(leftForm, "", "", "", "", ""))-1)
	t.print("#%s  %-30s  %-30s", left, "          out-of-place", "            in-place")
	t.columns("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
	t.columns("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")
}

func (t *table) legend() {
	t.print("# time   mean time of one call in microseconds, over %d calls back to back and all ranks", t.job.iters)
	t.print("# algbw  size / time, in 10^9 bytes per second")
	t.print("# busbw  algbw times %.3g: what the slowest link between %d ranks carries, to compare with its rate",
		t.job.op.factor(t.job.ranks), t.job.ranks)
	t.print("# #wrong elements that differ from what they must be, of all ranks, each element looked at; any makes the exit status 1")
	t.print("#")
}

func (t *table) columns(size, count, typ, red, root, time, alg, bus, wrong string) {
	right := fmt.Sprintf(rightForm, time, alg, bus, wrong)
	t.print("#%s%s%s", fmt.Sprintf(leftForm, size, count, typ, red, root)[1:], right, right)
}

func (t *table) row(r row) {
	root := -1
	if t.job.op.rooted {
		root = t.job.root
	}
	line := fmt.Sprintf(leftForm, r.bytes, r.count, t.job.typ.name, t.job.red.name, root)
	for _, g := range r.results {
		line += t.cells(r.bytes, g)
	}
	t.print("%s", line)
}

func (t *table) cells(bytes int, g result) string {
	if !g.measured {
		return fmt.Sprintf(rightForm, "N/A", "N/A", "N/A", "N/A")
	}
	alg := 0.0
	if g.seconds > 0 {
		alg = float64(bytes) / g.seconds / 1e9
	}
	bus := alg * t.job.op.factor(t.job.ranks)
	t.sum, t.terms, t.wrong = t.sum+bus, t.terms+1, t.wrong+g.wrong
	wrong := "N/A"
	if g.checked {
		wrong = fmt.Sprint(g.wrong)
	}
	return fmt.Sprintf(rightForm, digits(g.seconds*1e6), fmt.Sprintf("%.2f", alg), fmt.Sprintf("%.2f", bus), wrong)
}

// digits keeps a time within its column.
func digits(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.2f", us)
	case us < 100000:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

func (t *table) foot() {
	verdict := "OK"
	if t.wrong > 0 {
		verdict = "FAILED"
	}
	t.print("# Out of bounds values : %d %s", t.wrong, verdict)
	t.print("# Avg bus bandwidth    : %.5g", t.sum/float64(max(t.terms, 1)))
	t.print("#")
}

// print writes a line at once: a sweep that hangs has shown what it measured before.
func (t *table) print(format string, args ...any) {
	_, _ = fmt.Fprintln(t.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}
