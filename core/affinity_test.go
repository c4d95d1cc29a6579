package core

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/testkit"
)

// movers tells this test's process that its threads may be moved for good, and where it can write.
const movers = "CORE_TEST_MOVERS"

// The library's own threads go near the card, or where NCCL_PROXY_CPUSET says; functions of the program and its threads do not.
// Threads that were moved stay so, and those cases are run in a process of their own.
func TestOwnThreadsArePlaced(t *testing.T) {
	if os.Getenv(movers) != "" {
		t.Run("card", runPinned)
		t.Run("setting", runPinned)
		return
	}
	if libraryMask().Len() < 2 {
		t.Skip("one processor: there is nothing to choose")
	}
	t.Run("outside", runPinned)
	t.Run("program", runPinned)
	c := exec.Command(os.Args[0], "-test.run=^TestOwnThreadsArePlaced$", "-test.v")
	c.Env = append(os.Environ(), movers+"=1")
	if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestOwnThreadsArePlaced/setting")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// runPinned runs a case: which processors the library's threads must have then.
func runPinned(t *testing.T) {
	_, name, _ := strings.Cut(t.Name(), "/")
	mine := libraryMask()
	first, second := cpuset.Of(mine.All()[0]), cpuset.Of(mine.All()[1])
	OwnThreads = name != "program"
	defer func() { OwnThreads = false }()
	want := second
	use(t, "tcp")
	switch name {
	case "card", "program":
		testkit.Setenv(t, "NCCL_TOPO_FILE", twoNodes(t, first, second))
	case "setting":
		want = first
		testkit.Setenv(t, "NCCL_PROXY_CPUSET", fmt.Sprintf("%s,%d", first, cpuset.Most-1))
	case "outside":
		testkit.Setenv(t, "NCCL_PROXY_CPUSET", fmt.Sprint(cpuset.Most-1))
	}
	if name == "outside" || name == "program" {
		want = mine
	}
	runtime.LockOSThread() // a thread that is not the library's
	defer runtime.UnlockOSThread()
	before := mask(t, 0)
	w := newWorld(t, 2)
	w.must(w.each(func(r int) error { return do(w.comms[r], &adding(2, 1<<20, 1).part(r).call) }))
	own, lent := make(chan cpuset.Set, 1), make(chan cpuset.Set, 1)
	s := newStream(t)
	s.After(func() { own <- mask(t, 0) })
	s.HostFunc(func() { lent <- mask(t, 0) })
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	if got := <-own; !got.Equal(want) {
		t.Errorf("%s: what is queued on a stream runs on processors %s, want %s", name, got, want)
	}
	if got := <-lent; !got.Equal(mine) {
		t.Errorf("%s: a function of the program runs on processors %s, want %s", name, got, mine)
	}
	if got := mask(t, 0); !got.Equal(before) {
		t.Errorf("%s: the program's thread runs on processors %s, before on %s", name, got, before)
	}
	w.destroy()
}

func mask(t *testing.T, thread int) cpuset.Set {
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &now); err != nil {
		t.Error(err)
	}
	return fromMask(now)
}

// twoNodes writes a topology of two NUMA nodes with the card of this rank's address on the second.
func twoNodes(t *testing.T, first, second cpuset.Set) string {
	svc, err := boot.Default()
	if err != nil {
		t.Fatal(err)
	}
	card := boot.InterfaceOf(svc.Addrs()[0].Addr())
	if card == "" || card == "lo" {
		t.Skip("this machine has no network interface but the loopback")
	}
	const node = `<cpu numaid="%d" affinity="%s" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">%s</cpu>`
	nic := `<pci busid="ffff:01:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"><nic>` +
		`<net name="` + card + `" dev="0" speed="10000"/></nic></pci>`
	text := strings.Join([]string{`<system version="1">`, fmt.Sprintf(node, 0, first.Mask(), ""), fmt.Sprintf(node, 1, second.Mask(), nic),
		`</system>`}, "\n")
	file := filepath.Join(t.TempDir(), "topo.xml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
