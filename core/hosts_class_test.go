package core

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Packets with data have the traffic class that was set, both ways, whichever protocol carries them, and none where none was set.
func TestTrafficClass(t *testing.T) {
	for name, c := range map[string]struct {
		six   bool
		class string
		want  byte
	}{
		"IPv4":          {class: "104", want: 104},
		"IPv6":          {six: true, class: "104", want: 104},
		"IPv4, not set": {class: "0"},
		"IPv6, not set": {six: true, class: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := hosts(t, 2)
			rail := l.Rail()
			if c.six {
				for h := range 2 {
					l.Readdress(h, rail, []string{"fd00:1::1/64", "fd00:1::2/64"}[h])
				}
			}
			ranks := onHosts(t, l, []int{0, 1}, 100_000, "HCCL_NET_TC="+c.class)
			seen := l.Capture(0, rail)
			tell(ranks, 3)
			finish(t, ranks, 0, 3)
			count := map[byte]int{} // of packets from each host, by the last byte of its address
			for _, p := range seen.Stop() {
				class, six, from, data := carries(p)
				if !data {
					continue
				}
				if count[from]++; class != c.want || six != c.six {
					t.Fatalf("a packet from host %d, IPv6 %v: traffic class %d", from-1, six, class)
				}
			}
			if count[1] == 0 || count[2] == 0 {
				t.Errorf("packets with data by the sender: %v", count)
			}
			disperse(t, ranks)
		})
	}
}

// carries tells of a packet with much data of TCP its traffic class, its protocol and the last byte of the sender's address.
func carries(p []byte) (class byte, six bool, from byte, data bool) {
	const mac, much = 14, 1000
	if len(p) < mac+much {
		return
	}
	ip := p[mac:]
	switch ip[0] >> 4 {
	case 4:
		return ip[1], false, ip[15], ip[9] == unix.IPPROTO_TCP
	case 6:
		return ip[0]<<4 | ip[1]>>4, true, ip[23], ip[6] == unix.IPPROTO_TCP
	}
	return
}
