package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report says where results go besides, or in place of, the table.
type report struct {
	csv      bool // on stdout, in place of the table
	csvFile  string
	jsonFile string
}

// summary is what is told at the end.
type summary struct {
	sum   float64 // of bus bandwidths
	terms int
	wrong int64
	step  *result // of a mix
	calls int     // of its step
}

func (s *summary) average() float64 { return s.sum / float64(max(s.terms, 1)) }

func (s *summary) add(w *row) {
	for _, g := range w.halves() {
		_, bus := w.bandwidths(g)
		s.sum, s.terms, s.wrong = s.sum+bus, s.terms+1, s.wrong+g.wrong
	}
}

// output is rank 0's: it passes each row to all who show it.
type output struct {
	summary
	job      *job
	page     *page
	began    time.Time
	rows     []row
	table    *table
	progress *progress
}

func newOutput(j *job, p *page) *output {
	o := &output{job: j, page: p, began: time.Now(), table: &table{os.Stdout, j}, progress: newProgress(j)}
	if j.report.csv {
		o.table.print("%s", csvHead(j))
	} else {
		o.table.head(p)
	}
	return o
}

func (o *output) row(w row) {
	o.progress.clear()
	o.add(&w)
	o.rows = append(o.rows, w)
	if o.job.report.csv {
		o.table.print("%s", csvRow(o.job, &w))
	} else {
		o.table.row(&w)
	}
	o.progress.done++
}

// foot ends the table and writes the files; a file that cannot be written is an error.
func (o *output) foot() error {
	o.progress.clear()
	if !o.job.report.csv {
		o.table.foot(&o.summary)
	}
	if path := o.job.report.csvFile; path != "" {
		if err := os.WriteFile(path, []byte(pandasCSV(o.job, o.rows)), 0o666); err != nil {
			return fmt.Errorf("-F: %w", err)
		}
	}
	if path := o.job.report.jsonFile; path != "" {
		if err := writeJSON(path, o); err != nil {
			return fmt.Errorf("-J: %w", err)
		}
	}
	return nil
}

// writable says at the start what else would be found out after a long run.
func (r *report) writable() error {
	for flag, path := range map[string]string{"-F": r.csvFile, "-J": r.jsonFile} {
		if path == "" {
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		_ = f.Close()
	}
	return nil
}

// progress is a bar on stderr, where that is a terminal: elsewhere it is nil, and silent.
type progress struct{ done, total int }

const barWidth = 30

func newProgress(j *job) *progress {
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err != nil {
		return &progress{}
	}
	return &progress{total: max(len(j.subjects)*len(j.sizes()), len(j.mix), 1)}
}

// bar is what is shown.
func (p *progress) bar(what string) string {
	filled := min(barWidth*p.done/p.total, barWidth)
	return fmt.Sprintf("[%s%s] %d of %d, %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), p.done, p.total, what)
}

func (p *progress) show(what string) {
	if p.total > 0 {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", p.bar(what))
	}
}

func (p *progress) clear() {
	if p.total > 0 {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// sizeText is a size for people.
func sizeText(bytes int) string {
	units := []string{"", "K", "M", "G"}
	k := 0
	for ; bytes >= 1024 && bytes%1024 == 0 && k < len(units)-1; k++ {
		bytes /= 1024
	}
	return fmt.Sprintf("%d%s", bytes, units[k])
}
