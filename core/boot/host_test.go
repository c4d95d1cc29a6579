package boot

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// freePair returns a port that is free, as is the next one.
func freePair(t *testing.T) int {
	t.Helper()
	for range 100 {
		low := freePort(t)
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", low+1)); err == nil {
			l.Close()
			return low
		}
	}
	t.Skip("no two neighbouring ports are free")
	return 0
}

// The constants of wire.go by their names in meet.h.
var layout = map[string]int{
	"WIRE_VERSION": wireVersion, "ID_SIZE": idSize, "ID_MAGIC_VALUE": idMagicValue, "ID_MAGIC": idMagic, "ID_VERSION": idVersion,
	"ID_PORT": idPort, "ID_NUMBER": idNumber, "ID_SECRET": idSecret, "ID_ROOT": idRoot, "ID_FIXED": idFixed, "ID_COUNT": idCount,
	"ID_LEFT": idLeft, "ID_ADDRESSES": idAddresses, "ADDRESS_V4": addressV4,
	"CHALLENGE_SIZE": challengeSize, "CHALLENGE_MAGIC_VALUE": challengeMagicValue, "CHALLENGE_MAGIC": challengeMagic,
	"CHALLENGE_VERSION": challengeVersion, "CHALLENGE_ROOT": challengeRoot, "CHALLENGE_NONCE": challengeNonce,
	"HELLO_SIZE": helloSize, "HELLO_MAGIC_VALUE": helloMagicValue, "HELLO_MAGIC": helloMagic, "HELLO_VERSION": helloVersion,
	"HELLO_LIBRARY": helloLibrary, "HELLO_CONTACT": helloContact, "HELLO_RANK": helloRank, "HELLO_NRANKS": helloNranks,
	"HELLO_IDS": helloIDs, "HELLO_ROLE": helloRole, "HELLO_NUMBER": helloNumber, "HELLO_NONCE": helloNonce,
	"MAX_LIBRARY": maxLibrary, "MAX_CONTACT": maxContact,
	"CHALLENGE_ENCRYPTS": challengeEncrypts, "HELLO_MARK": helloMark, "WHY_KEY": whyKey,
	"MAX_RANKS": maxRanks, "MAC_SIZE": macSize,
	"REQUEST_SIZE": requestSize, "REQUEST_MAGIC_VALUE": requestMagicValue, "REQUEST_MAGIC": requestMagic,
	"REQUEST_WHAT": requestWhat, "ASK": ask, "TIMEOUT": askTimeout, "ABORT": askAbort,
	"ANSWER_SIZE": answerSize, "ANSWER_MAGIC_VALUE": answerMagicValue, "ANSWER_MAGIC": answerMagic, "ANSWER_KIND": answerKind,
	"ANSWER_LENGTH": answerLength, "ANSWER_SERIAL": answerSerial, "MAX_ANSWER": maxAnswer, "GO": kindGo, "MISSING": kindMissing,
	"MEMBER":  member,
	"SPEAKER": speaker, "ASKER": asker, "HERALD": herald, "FAILED": kindFailed, "ABSENT": kindAbsent, "MAX_NAMED": maxNamed,
	"WHY_USED": whyUsed, "WHY_DUPLICATE": whyDuplicate, "WHY_NRANKS": whyNranks, "WHY_VERSION": whyVersion, "WHY_TIMEOUT": whyTimeout,
	"WHY_GONE": whyGone, "WHY_ABORTED": whyAborted, "WHY_GARBAGE": whyGarbage, "WHY_FULL": whyFull, "WHY_MAKER": whyMaker, "WHY_IDS": whyIDs,
}

func TestLayoutIsThatOfTheShim(t *testing.T) {
	header, err := os.ReadFile("../../capi/shim/meet.h")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range regexp.MustCompile(`(?m)^  HCCL_(\w+) = ([^,]+),`).FindAllStringSubmatch(string(header), -1) {
		v, err := strconv.ParseInt(m[2], 0, 64)
		if a, b, shift := strings.Cut(m[2], " << "); shift {
			l, _ := strconv.Atoi(a)
			r, _ := strconv.Atoi(b)
			v, err = int64(l)<<r, nil
		}
		want, ok := layout[m[1]]
		if err != nil || !ok || int64(want) != v {
			t.Errorf("HCCL_%s is %s in meet.h and %d (known: %v) in wire.go", m[1], m[2], want, ok)
		}
		seen++
	}
	if seen != len(layout) {
		t.Errorf("meet.h has %d values, wire.go %d", seen, len(layout))
	}
}

// Go's implementation is the reference; RFC 4231's second case and FIPS 180-4's "abc" pin the reference down.
func TestSHA256OfTheShim(t *testing.T) {
	type vector struct {
		key, data []byte
		mac, sum  string
	}
	cases := []vector{
		{[]byte("Jefe"), []byte("what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", ""},
		{nil, []byte("abc"), "", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	}
	data := bytes.Repeat([]byte("0123456789abcde"), 300)
	for _, n := range []int{0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000, 4500} {
		for _, keylen := range []int{0, 16, 63, 64, 65, 200} {
			h := hmac.New(sha256.New, data[:keylen])
			h.Write(data[:n])
			sum := sha256.Sum256(data[:n])
			cases = append(cases, vector{data[:keylen], data[:n], hex.EncodeToString(h.Sum(nil)), hex.EncodeToString(sum[:])})
		}
	}
	var in bytes.Buffer
	for _, c := range cases {
		fmt.Fprintf(&in, "%s %d %s\n", hexOrDash(c.key), 1+len(c.data)/7, hexOrDash(c.data))
	}
	cmd := exec.Command(shaProgram)
	cmd.Stdin = &in
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(cases) {
		t.Fatalf("%d lines for %d cases: %v", len(lines), len(cases), err)
	}
	for i, c := range cases {
		got := strings.Fields(lines[i])
		if c.mac != "" && got[0] != c.mac || c.sum != "" && got[1] != c.sum {
			t.Errorf("%d bytes, key of %d: %v", len(c.data), len(c.key), got)
		}
	}
}

func hexOrDash(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

func TestChoiceOfInterfaces(t *testing.T) {
	a := netip.MustParseAddr
	all := []hostAddr{{name: "lo", addr: a("127.0.0.1")}, {name: "docker0", addr: a("172.17.0.1")},
		{name: "eth1", addr: a("10.0.1.1")}, {name: "eth10", addr: a("10.0.10.1")},
		{name: "ib0", addr: a("10.1.0.1")}, {name: "eth1", addr: a("fe80::1")}, {name: "ib0", addr: a("fd00::1")}}
	names := []string{"lo", "docker0", "eth1", "eth10", "ib0"}
	for _, c := range []struct{ rule, family, want string }{
		{"", "", "10.0.1.1 10.0.10.1 10.1.0.1 fd00::1 172.17.0.1 127.0.0.1"},
		{"", "AF_INET", "10.0.1.1 10.0.10.1 10.1.0.1 172.17.0.1 127.0.0.1"},
		{"", "AF_INET6", "fd00::1 ::1"},
		{"eth1", "", "10.0.1.1 10.0.10.1 127.0.0.1"},
		{"=eth1", "", "10.0.1.1 127.0.0.1"},
		{"=eth1,=ib0", "AF_INET", "10.0.1.1 10.1.0.1 127.0.0.1"},
		{"^eth,docker", "AF_INET", "10.1.0.1 127.0.0.1"},
		{"^=eth1", "AF_INET", "172.17.0.1 10.0.10.1 10.1.0.1 127.0.0.1"},
		{"docker,ib", "AF_INET", "172.17.0.1 10.1.0.1 127.0.0.1"},
		{"lo", "", "127.0.0.1"},
	} {
		got, _, err := chooseAddrs(Settings{Interfaces: c.rule, Family: c.family}, all, names)
		if text := strings.Trim(fmt.Sprint(got), "[]"); err != nil || text != c.want {
			t.Errorf("%q, %q: %s, want %s (%v)", c.rule, c.family, text, c.want, err)
		}
	}
	if _, _, err := chooseAddrs(Settings{Interfaces: "=nosuch0"}, all, names); err == nil ||
		!strings.Contains(err.Error(), "nosuch0") || !strings.Contains(err.Error(), "eth10") {
		t.Errorf("a rule that matches nothing: %v", err)
	}
}

func TestPortRange(t *testing.T) {
	low := freePair(t)
	rule := fmt.Sprintf("HCCL_PORT_RANGE=%d-%d", low, low+1)
	var taken []int
	for range 2 {
		m := newMaker(t, rule)
		id, err := parseID(m.ID())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, int(id.addrs[0].Port()))
	}
	slices.Sort(taken)
	if !slices.Equal(taken, []int{low, low + 1}) {
		t.Errorf("ports %v of %s", taken, rule)
	}
	if text := newMaker(t, rule).Ask("new"); !strings.HasPrefix(text, "error 2") || !strings.Contains(text, "widen the range") {
		t.Errorf("no port is left: %s", text)
	}
	_, err := (&Service{}).listen(Settings{Ports: rule[len("HCCL_PORT_RANGE="):]})
	if err == nil || !strings.Contains(err.Error(), "widen") {
		t.Errorf("no port is left: %v", err)
	}
	for _, bad := range []string{"5", "9-3", "a-b", "0-10", "1-70000", "1-2x"} {
		if _, _, err := parsePorts(bad); err == nil {
			t.Errorf("%q was taken for a range", bad)
		}
		if text := newMaker(t, "HCCL_PORT_RANGE="+bad).Ask("new"); !strings.HasPrefix(text, "error") {
			t.Errorf("%q: %s", bad, text)
		}
	}
}

// exit() is not held up by the thread, of which a maker has just one, and the ranks that wait are told within their limit.
func TestMakerExits(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	m.ID()
	if got := m.Ask("threads"); got != "threads 2" {
		t.Errorf("after two ids: %s", got)
	}
	asked := 0
	lim := within(2)
	lim.Abort = func() error {
		if asked++; asked == 10 { // it has said hello by now
			fmt.Fprintln(m.In, "exit")
		}
		return nil
	}
	var gone *UnreachableError
	if _, err := Meet(id, 0, 2, nil, lim); !errors.As(err, &gone) {
		t.Errorf("the maker exited while a rank waited: %v", err)
	}
	m.Gone.Do(func() {
		if state, err := m.Cmd.Process.Wait(); err != nil || state.ExitCode() != 0 {
			t.Errorf("exit: %v, %v", state, err)
		}
	})
}

// A maker that has no descriptor left for all ranks says so instead of letting them wait.
func TestMakerWithoutDescriptors(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	limit := unix.Rlimit{Cur: 16, Max: 16}
	if err := unix.Prlimit(m.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Skip(err)
	}
	for r, o := range meetAll(id, 32, upTo(32), same(within(20))) {
		if o.err == nil || !strings.Contains(o.err.Error(), "ulimit -n") {
			t.Errorf("rank %d: %v", r, o.err)
		}
	}
	wantMet(t, 3, meetAll(m.ID(), 3, upTo(3), same(within(20))))
}
