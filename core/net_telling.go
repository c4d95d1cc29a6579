package core

import (
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/tcp"
)

// mostTold is how many ranks a line names by their rails.
const mostTold = 16

// tellRails says what each rail to other hosts has carried, for all communicators.
func (c *Comm) tellRails() {
	var texts []string
	more := 0
	for r := range c.n {
		switch {
		case c.fars[r] == nil || !c.fars[r].remote:
		case len(texts) == mostTold:
			more++
		default:
			texts = append(texts, fmt.Sprintf("rank %d %s", r, railTexts(c.fars[r].link.Rails())))
		}
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and to %d more", more))
	}
	if texts != nil {
		c.log.Info(log.Net, "communicator %s: sent to %s", c.label(), strings.Join(texts, "; "))
	}
}

func railTexts(rails []tcp.RailState) string {
	var texts []string
	for _, s := range rails {
		text := fmt.Sprintf("%.1f MB by rail %d", float64(s.Sent)/1e6, s.Rail)
		if s.Direct > 0 {
			text += fmt.Sprintf(" (%.1f MB without a copy)", float64(s.Direct)/1e6)
		}
		if s.Rate > 0 {
			text += fmt.Sprintf(" (%.1f MB/s of late)", float64(s.Rate)/1e6)
		}
		if !s.Alive {
			text += ", which has failed"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
