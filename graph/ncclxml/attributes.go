package ncclxml

import (
	"fmt"
	"strconv"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

// reader collects what is wrong while the tree becomes a machine.
type reader struct {
	report *topo.Report
	taken  map[string]bool // names of attributes of the element at hand that are understood
	xgmi   int             // entries of links between AMD's GPUs
}

func (r *reader) fault(e *element, what, remedy string) { r.report.Fault(e.line, what, remedy) }

// needs reports an attribute that is not there.
func (r *reader) needs(e *element, name, so, remedy string) {
	if _, ok := e.attr(name); !ok {
		r.fault(e, fmt.Sprintf("<%s> has no %s: %s", e.name, name, so), remedy)
	}
}

// bounds of a number; what lies outside is a slip of the pen, not a machine.
type bounds struct{ least, most, without int }

// integer reads a number, decimal or 0x. Absent it is b.without; wrong it is that too, and a fault.
func (r *reader) integer(e *element, name string, b bounds) int {
	r.taken[name] = true
	text, ok := e.attr(name)
	if !ok || text == "" {
		return b.without
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 0, 64)
	if err != nil || n < int64(b.least) || n > int64(b.most) {
		r.fault(e, fmt.Sprintf("<%s> has %s=%q, which is no number from %d to %d: %d is taken", e.name, name, shorten(text), b.least, b.most,
			b.without), fmt.Sprintf("write the number of the device, or leave %s out", name))
		return b.without
	}
	return int(n)
}

// flag reads 0 or 1.
func (r *reader) flag(e *element, name string, without bool) bool {
	def := 0
	if without {
		def = 1
	}
	return r.integer(e, name, bounds{0, 1, def}) == 1
}

func (r *reader) text(e *element, name string) string {
	r.taken[name] = true
	text, _ := e.attr(name)
	return text
}

// number reads a fraction that is not negative.
func (r *reader) number(e *element, name string) float64 {
	text := r.text(e, name)
	if text == "" {
		return 0
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1e9) {
		r.fault(e, fmt.Sprintf("<%s> has %s=%q, which is no number: 0 is taken", e.name, name, shorten(text)), "write a number, or leave it out")
		return 0
	}
	return x
}

// rest is what the element says beside what has been read from it; names of other namespaces are not NCCL's.
func (r *reader) rest(e *element) (extra []topo.Attr) {
	for _, a := range e.attrs {
		if !r.taken[a.Name.Local] && a.Name.Space == "" {
			extra = append(extra, topo.Attr{Name: a.Name.Local, Value: a.Value})
		}
	}
	clear(r.taken)
	return extra
}

// shorten keeps a message readable whatever the file holds.
func shorten(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}
