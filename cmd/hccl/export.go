package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// csvHead and csvRow are --csv: one line of names, then one for each row.
func csvHead(j *job) string {
	fields := []string{"operation", "size", "count", "type", "redop", "root"}
	halves := []string{"", "inplace_"}
	if j.mix != nil {
		fields, halves = append(fields, "times"), halves[:1]
	}
	for _, half := range halves {
		for _, f := range []string{"time", "algbw", "busbw", "wrong"} {
			fields = append(fields, half+f)
		}
		if j.percentiles {
			fields = append(fields, half+"p50", half+"p99")
		}
		if j.throughput {
			fields = append(fields, half+"calls", half+"calls_per_second")
		}
	}
	return strings.Join(fields, ",")
}

func csvRow(j *job, w *row) string {
	fields := []any{w.op.name, w.bytes, w.count, w.typ.name, w.red.name, w.rootShown()}
	if j.mix != nil {
		fields = append(fields, w.times)
	}
	for _, g := range w.halves() {
		alg, bus := w.bandwidths(g)
		fields = append(fields, micros(g.seconds), number(alg), number(bus), g.wrongText())
		if j.percentiles {
			fields = append(fields, micros(g.p50), micros(g.p99))
		}
		if j.throughput {
			fields = append(fields, g.iters*j.fold, number(1/max(g.seconds, 1e-9)))
		}
	}
	words := make([]string, len(fields))
	for k, f := range fields {
		words[k] = fmt.Sprint(f)
	}
	return strings.Join(words, ",")
}

func number(x float64) string { return fmt.Sprintf("%.6g", x) }
func micros(s float64) string { return fmt.Sprintf("%.3f", s*1e6) }

// pandasCSV is -F: the three lines of names that nccl-tests write, so that their readers find the columns.
func pandasCSV(j *job, rows []row) string {
	halves := []string{"out-of-place", "in-place"}
	if j.mix != nil {
		halves = halves[:1]
	}
	top, names, units := ",,,,", "size, count, type, redop, root", "(B), (elements),,,"
	for _, half := range halves {
		top += strings.Repeat(","+half, 4)
		names += ", time, algbw, busbw, #wrong"
		units += ",(us),(GB/s),(GB/s),"
	}
	lines := []string{top, names, units}
	for k := range rows {
		w := &rows[k]
		line := fmt.Sprintf("%d, %d, %s, %s, %d", w.bytes, w.count, w.typ.name, w.red.name, w.rootShown())
		for _, g := range w.halves() {
			alg, bus := w.bandwidths(g)
			line += fmt.Sprintf(", %s, %s, %s, %s", micros(g.seconds), number(alg), number(bus), g.wrongText())
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// The document of -J. Times are microseconds, rates 10^9 bytes per second.
type document struct {
	Version int            `json:"version"`
	Tool    string         `json:"tool"`
	Library string         `json:"nccl_version"`
	Began   time.Time      `json:"start_time"`
	Ended   time.Time      `json:"end_time"`
	Args    []string       `json:"args"`
	Config  documentConfig `json:"config"`
	Ranks   []documentRank `json:"ranks"`
	Results []documentRow  `json:"results"`
	Step    *documentHalf  `json:"step,omitempty"`
	Wrong   int64          `json:"out_of_bounds"`
	OK      bool           `json:"ok"`
	Average float64        `json:"average_bus_bandwidth"`
}

type documentConfig struct {
	Ranks   int `json:"ranks"`
	Threads int `json:"threads"`
	Held    int `json:"gpus_per_thread"`
	Least   int `json:"minimum_bytes"`
	Most    int `json:"maximum_bytes"`
	Warmup  int `json:"warmup_iters"`
	Iters   int `json:"iters"`
	Fold    int `json:"agg_iters"`
	Checks  int `json:"validation"`
}

type documentRank struct {
	Rank int    `json:"rank"`
	PID  int    `json:"pid"`
	Host string `json:"hostname"`
}

type documentRow struct {
	Operation string        `json:"operation"`
	Size      int           `json:"size"`
	Count     int           `json:"count"`
	Type      string        `json:"type"`
	Redop     string        `json:"redop"`
	Root      int           `json:"root"`
	Times     int           `json:"times,omitempty"`
	Apart     *documentHalf `json:"out_of_place"`
	InPlace   *documentHalf `json:"in_place,omitempty"`
}

type documentHalf struct {
	Time  float64  `json:"time"`
	Alg   float64  `json:"alg_bw"`
	Bus   float64  `json:"bus_bw"`
	Wrong *int64   `json:"nwrong"` // null: not checked
	P50   *float64 `json:"p50,omitempty"`
	P99   *float64 `json:"p99,omitempty"`
	Calls int      `json:"calls"`
}

func writeJSON(path string, o *output) error {
	j := o.job
	d := document{Version: 1, Tool: "hccl perf " + j.title, Library: libraryText(),
		Began: o.began.UTC(), Ended: time.Now().UTC(), Args: os.Args,
		Config: documentConfig{j.ranks, j.threads, j.held, j.least, j.most, j.warmup, j.iters, j.fold, j.checks},
		Wrong:  o.wrong, OK: o.wrong == 0, Average: o.average(), Results: []documentRow{}}
	for r := range j.ranks {
		d.Ranks = append(d.Ranks, documentRank{r, int(o.page.of[r].pid), o.page.of[r].hostName()})
	}
	for k := range o.rows {
		d.Results = append(d.Results, o.document(&o.rows[k]))
	}
	if s := o.step; s != nil {
		d.Step = &documentHalf{Time: s.seconds * 1e6, P50: scaled(s.p50), P99: scaled(s.p99), Calls: s.iters}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o666)
	}
	return err
}

func (o *output) document(w *row) documentRow {
	d := documentRow{Operation: w.op.name, Size: w.bytes, Count: w.count, Type: w.typ.name, Redop: w.red.name, Root: w.rootShown(),
		Times: w.times}
	for k, g := range w.halves() {
		h := &documentHalf{Time: g.seconds * 1e6, Calls: g.iters * o.job.fold}
		h.Alg, h.Bus = w.bandwidths(g)
		if g.checked {
			h.Wrong = &g.wrong
		}
		if o.job.percentiles {
			h.P50, h.P99 = scaled(g.p50), scaled(g.p99)
		}
		if k == 0 {
			d.Apart = h
		} else {
			d.InPlace = h
		}
	}
	return d
}

func scaled(seconds float64) *float64 {
	us := seconds * 1e6
	return &us
}
