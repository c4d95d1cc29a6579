package topo

import (
	"cmp"
	"fmt"
	"slices"
)

// Fault is something in the source that cannot be right. It has been left out or replaced, as What says.
type Fault struct {
	Line   int    `json:"line"` // 0: of no line
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.What + "; " + f.Remedy
	}
	return fmt.Sprintf("line %d: %s; %s", f.Line, f.What, f.Remedy)
}

// Report is what a look at a topology found. Notes are no faults: the source may be as it should, but the reader ought to know.
type Report struct {
	Faults []Fault `json:"faults"`
	Notes  []Fault `json:"notes"`
}

// Fault adds a fault.
func (r *Report) Fault(line int, what, remedy string) {
	r.Faults = append(r.Faults, Fault{line, what, remedy})
}

// Note adds a note.
func (r *Report) Note(line int, what, remedy string) {
	r.Notes = append(r.Notes, Fault{line, what, remedy})
}

// Sort puts the report in the order of the source.
func (r *Report) Sort() {
	byLine := func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) }
	slices.SortStableFunc(r.Faults, byLine)
	slices.SortStableFunc(r.Notes, byLine)
}
