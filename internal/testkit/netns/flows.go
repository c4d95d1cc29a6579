package netns

import (
	"fmt"
	"os/exec"
	"strings"
)

// Ports is the range of ports (HCCL_PORT_RANGE) in which whoever is dialled is to listen where flows are shaped: below the ones that
// dialling takes.
const Ports = "20000-20999"

// flows is how many of a rail's connections have a bound of their own; those whose ports differ by a multiple of twice as many share one.
const flows = 64

// ShapeFlows bounds each connection by a rail to mbit Mbit/s, and all that go to one host to card Mbit/s, as clouds do: outside of the
// hosts. A connection is known by six bits of its dialler's port; the lowest is the same for all that a kernel chooses.
//
//	packets to a host ── htb 1:fff (card) ─┬─ 1:200 to 1:23f (mbit each)  of those who were dialled there
//	                                       ├─ 1:300 to 1:33f              of those who dialled
//	                                       └─ 1:1                         all else
func (l *Lab) ShapeFlows(rail, mbit, card int) {
	l.t.Helper()
	const dialling = "0x8000" // a bit that ports have from 32768 on
	for h := range l.hosts {
		port := l.port(h, rail)
		var b strings.Builder
		add := func(kind, format string, args ...any) {
			fmt.Fprintf(&b, "%s add dev %s %s\n", kind, port, fmt.Sprintf(format, args...))
		}
		add("qdisc", "root handle 1: htb default 1 r2q 1000")
		add("class", "parent 1: classid 1:fff htb rate %dmbit burst 64kb cburst 64kb quantum 60000", card)
		add("class", "parent 1:fff classid 1:1 htb rate 1mbit ceil %dmbit quantum 60000", card)
		for _, table := range []int{2, 3} {
			add("filter", "protocol ip parent 1: prio 1 handle %x: u32 divisor %d", table, flows)
			for k := range flows { // what is above the least rate is the card's to give
				class := fmt.Sprintf("1:%x%02x", table, k)
				add("class", "parent 1:fff classid %s htb rate 1mbit ceil %dmbit burst 64kb cburst 64kb quantum 60000", class, mbit)
				add("qdisc", "parent %s pfifo limit 100", class)
				add("filter", "protocol ip parent 1: prio 1 u32 ht %x:%x: match ip protocol 6 0xff flowid %s", table, k, class)
			}
		}
		const ports = 20 // where they begin in a packet: the sender's, then the reader's
		add("filter", "protocol ip parent 1: prio 1 u32 ht 800:: match ip sport %s %[1]s match ip protocol 6 0xff "+
			"hashkey mask 0x007e0000 at %d link 2:", dialling, ports)
		add("filter", "protocol ip parent 1: prio 1 u32 ht 800:: match ip dport %s %[1]s match ip protocol 6 0xff "+
			"hashkey mask 0x0000007e at %d link 3:", dialling, ports)
		cmd := exec.Command("tc", "-n", l.Switch(), "-batch", "-")
		cmd.Stdin = strings.NewReader(b.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			l.t.Fatalf("a bound for each connection: %v\n%s", err, out)
		}
	}
}
