package core

import (
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/log"
)

// mostTold is how many ranks a line names by their rails.
const mostTold = 16

// tellRails says what each rail to other hosts has carried, for all communicators.
func (c *Comm) tellRails() {
	var texts []string
	more := 0
	for r := range c.n {
		switch {
		case c.fars[r] == nil || !c.fars[r].Remote():
		case len(texts) == mostTold:
			more++
		default:
			texts = append(texts, fmt.Sprintf("rank %d %s", r, c.fars[r].Carried()))
		}
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and to %d more", more))
	}
	if texts != nil {
		c.log.Info(log.Net, "communicator %s: sent to %s", c.label(), strings.Join(texts, "; "))
	}
}
