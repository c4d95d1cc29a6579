package boot

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The id holds what the Go side would choose, under each rule.
func TestShimChoosesTheSameAddresses(t *testing.T) { chooseAlike(t) }

func chooseAlike(t *testing.T, more ...Settings) (left int) {
	t.Helper()
	all, names, err := hostAddrs()
	if err != nil {
		t.Fatal(err)
	}
	last := names[len(names)-1]
	rules := []Settings{{}, {Family: "AF_INET"}, {Family: "AF_INET6"}, {Interfaces: "=lo"}, {Interfaces: "^lo"}, {Interfaces: last}}
	for _, s := range append(rules, more...) {
		want, none, err := chooseAddrs(s, all, names)
		if err != nil {
			t.Fatal(err)
		}
		m := newMaker(t, "NCCL_SOCKET_IFNAME="+s.Interfaces, "NCCL_SOCKET_FAMILY="+s.Family)
		id, err := parseID(m.ID())
		if err != nil {
			t.Fatal(err)
		}
		var got []netip.Addr
		for _, a := range id.addrs {
			got = append(got, a.Addr())
		}
		if !slices.Equal(got, want) || id.left != none {
			t.Errorf("%+v: the shim chose %v and left %d, Go %v and %d", s, got, id.left, want, none)
		}
		left = max(left, none)
	}
	m := newMaker(t, "NCCL_SOCKET_IFNAME==nosuch0")
	if text := m.Ask("new"); !strings.HasPrefix(text, "error 5") || !strings.Contains(text, "nosuch0") || !strings.Contains(text, "lo") {
		t.Errorf("a rule that matches nothing: %s", text)
	}
	return left
}

// inside reports whether this is the test itself in a network namespace of its own, which it makes and prepares by a shell's script.
func inside(t *testing.T, script string) bool {
	t.Helper()
	if os.Getenv("BOOT_INSIDE") != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-n", "sh", "-ec", script+"\n"+`exec "$0" -test.run "^$1$"`, self, t.Name())
	cmd.Env = append(os.Environ(), "BOOT_INSIDE="+filepath.Dir(rootProgram))
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "not found") {
		t.Skipf("no network namespace can be made here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// In a network namespace that has nothing but loopback, all of it works.
func TestLoopbackOnly(t *testing.T) {
	if inside(t, "ip link set lo up") {
		m := newMaker(t)
		wantMet(t, 6, meetAll(m.ID(), 6, upTo(6), same(within(10))))
	}
}

// Both sides choose the same of more interfaces than there is room for: of all kinds, with several addresses, with labels, without carrier.
func TestManyInterfaces(t *testing.T) {
	script, up := "ip -batch - <<END\nlink set lo up\naddr add 10.9.9.9/32 dev lo\n", 0
	for k := range 18 {
		name := []string{"e", "docker", "br-"}[k%9%3] + fmt.Sprint(k)
		script += fmt.Sprintf("link add %s type veth peer name far%d\nlink set %s up\naddr add 10.1.%d.1/24 dev %s\n", name, k, name, k, name)
		if k%4 > 0 {
			up += 2 // both ends
			script += fmt.Sprintf("link set far%d up\naddr add 10.2.%d.1/24 dev %s label %s:x\naddr add fd00:%d::1/64 dev %s nodad\n", k, k, name,
				name, k, name)
		}
	}
	settled := fmt.Sprintf("END\nuntil [ $(ip -o link | grep -c 'state UP') -eq %d ]; do :; done", up) // the kernel looks at carriers later
	if !inside(t, script+settled) {
		return
	}
	if left := chooseAlike(t, Settings{Interfaces: "=e0,=docker1"}, Settings{Interfaces: "docker,e"}); left == 0 {
		t.Error("all had room")
	}
}

// Addresses become as short as they can, and themselves again. What is no address is not taken for one.
func TestPackedAddresses(t *testing.T) {
	for text, size := range map[string]int{"10.0.0.1": 5, "0.0.0.0": 5, "::1": 2, "::": 2, "fd00::1": 3, "2001:db8:1:2:3:4:5:6": 16,
		"2001:db8::ff00:0:0:1": 11, "1111:1111:1111:1111:1111:1111:1111:1111": 17, "1111:1111:1111:1111:1111:1111:1111::": 15} {
		a := netip.MustParseAddr(text)
		b := packAddress(nil, a)
		again, rest, ok := cutAddress(append(b, 1, 2))
		if len(b) != size || again != a || len(rest) != 2 || !ok {
			t.Errorf("%v: % x, which is %v and % x (%v)", a, b, again, rest, ok)
		}
		if _, _, ok := cutAddress(b[:len(b)-1]); ok {
			t.Errorf("%v was taken though it lacks a byte", a)
		}
	}
	if _, _, ok := cutAddress(append([]byte{0xf5}, make([]byte, 16)...)); ok {
		t.Error("zeros beyond the end of an address were taken")
	}
}

// A maker that cannot be reached may be at an address that had no room: the error says so.
func TestLeftOutIsTold(t *testing.T) {
	err := &UnreachableError{Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80")}, Why: []string{"no answer"}, Left: 3}
	if text := err.Error(); !strings.Contains(text, "3 more") || !strings.Contains(text, "NCCL_SOCKET_IFNAME") {
		t.Error(text)
	}
}
