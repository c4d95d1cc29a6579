package links

import (
	"bytes"
	"os"
	"strconv"
)

// cards are this host's interfaces, as they are during one turn of the keeper.
type cards struct {
	text []byte // nil: not read in this turn
}

// sent is how many bytes an interface has sent for all processes of its network, 0 where that is not known.
func (c *cards) sent(name string) uint64 {
	if c.text == nil {
		c.text, _ = os.ReadFile("/proc/thread-self/net/dev") // of the network namespace, which what is mounted at /sys may not be
	}
	const column = 8 // of bytes sent
	for line := range bytes.Lines(c.text) {
		of, rest, ok := bytes.Cut(line, []byte(":"))
		if f := bytes.Fields(rest); ok && string(bytes.TrimSpace(of)) == name && len(f) > column {
			n, _ := strconv.ParseUint(string(f[column]), 10, 64)
			return n
		}
	}
	return 0
}
