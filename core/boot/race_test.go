package boot

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Where somebody is reached while addresses are being tried, the next one is there, and at once. An address with which there is a
// connection keeps its head start where one that gives no sign does not.
func TestRaceGoesWhereOthersArrived(t *testing.T) {
	script := ""
	for _, k := range []string{"0", "1", "2"} {
		script += "ip link add e" + k + " type veth peer name far" + k + "; ip addr add 10.7." + k + ".1/24 dev e" + k + "; ip link set e" + k +
			" up; ip link set far" + k + " up; "
	}
	if !inside(t, script+"ip link set lo up") {
		return
	}
	s, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	r := newRace(greetingMagic, s.tag, []netip.AddrPort{at("10.7.0.7:9"), at("10.7.1.7:9"), at("10.7.2.7:9")}, nil)
	defer r.close()
	if r.gap = time.Hour; r.connected() {
		t.Fatal("somebody answers where nobody is")
	}
	s.note(netip.MustParseAddr("10.7.2.8"))
	r.start()
	if r.addrs[1] != at("10.7.2.7:9") || len(r.runs) < 2 {
		t.Errorf("after %d attempts the order is %v", len(r.runs), r.addrs)
	}
	if r.tried = time.Now().Add(-answerTime); len(r.runs) == 2 && !r.due() {
		t.Error("an address that gives no sign keeps its head start")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	q := newRace(greetingMagic, s.tag, []netip.AddrPort{l.Addr().(*net.TCPAddr).AddrPort(), at("10.7.0.7:9")}, nil)
	defer q.close()
	if q.gap, q.tried = time.Hour, time.Now().Add(-answerTime); len(q.runs) == 1 && (!q.connected() || q.due()) {
		t.Error("an address with a connection lost its head start")
	}
}
