package core

import (
	"fmt"
	"strings"
	"time"
)

// phases are the parts of making a communicator and how long each took, for one line at INFO: where the time of a slow start goes.
type phases struct {
	began, last time.Time
	parts       []string
}

func (p *phases) begin() {
	p.began = time.Now()
	p.last = p.began
}

// end ends a phase that began when the one before it ended.
func (p *phases) end(name string) {
	now := time.Now()
	p.parts = append(p.parts, fmt.Sprintf("%s %.1f", name, milliseconds(now.Sub(p.last))))
	p.last = now
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// String is the whole time, and that of each phase.
func (p *phases) String() string {
	text := fmt.Sprintf("%.1f ms", milliseconds(p.last.Sub(p.began)))
	if len(p.parts) > 1 {
		text += " (" + strings.Join(p.parts, ", ") + ")"
	}
	return text
}
