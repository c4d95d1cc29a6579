package core

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/testkit/netns"
)

// Processes that were given the processors of one NUMA node send by the card there while it has room, whichever of two it is. Those
// that are alone on their host have no card to leave to others.
func TestCardsOfTheOwnNodeGoFirst(t *testing.T) {
	if libraryMask().Len() < 2 {
		t.Skip("one processor: there are no two nodes")
	}
	first, second := cpuset.Of(libraryMask().All()[0]), cpuset.Of(libraryMask().All()[1])
	for name, c := range map[string]struct {
		nodes [2]cpuset.Set // of e0 and e1
		near  int
		at    []int
		says  int
	}{
		"e0":    {[2]cpuset.Set{first, second}, 0, []int{0, 0, 1, 1}, 4},
		"e1":    {[2]cpuset.Set{second, first}, 1, []int{0, 0, 1, 1}, 4},
		"alone": {[2]cpuset.Set{second, first}, 0, []int{0, 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := hosts(t, 2)
			for k := range 2 {
				l.Rail()
				for h := range 2 {
					l.Shape(h, k, 400)
				}
			}
			log := filepath.Join(t.TempDir(), "log.%p")
			const times = 100
			var ranks []*child
			within(t, first, func() {
				ranks = onHosts(t, l, c.at, 10_000, "NCCL_TOPO_FILE="+cardsApart(t, c.nodes), "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE="+log)
			})
			tell(ranks, times)
			finish(t, ranks, 0, times)
			by, other := l.Sent(0, netns.Device(c.near)), l.Sent(0, netns.Device(1-c.near))
			if by < times*10_000 || other > by/4 {
				t.Errorf("%d bytes went by the near card, %d by the other one", by, other)
			}
			disperse(t, ranks)
			says := fmt.Sprintf("go first by %s, near the processors that this process was given (%s), and by %s where", netns.Device(c.near), first,
				netns.Device(1-c.near))
			if said := allOf(t, filepath.Dir(log)); strings.Count(said, says) != c.says {
				t.Errorf("%d of %d processes are to say %q:\n%s", c.says, len(c.at), says, said)
			}
		})
	}
}

// allOf is what stands in the files of a folder.
func allOf(t *testing.T, folder string) (text string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// within has processes that f starts run on a set of processors.
func within(t *testing.T, set cpuset.Set, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, only := toMask(mask(t, 0)), toMask(set)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	f()
}

// cardsApart writes a topology with e0 at the first node and e1 at the second.
func cardsApart(t *testing.T, nodes [2]cpuset.Set) string {
	t.Helper()
	text := "<system version=\"1\">\n"
	for k, set := range nodes {
		text += fmt.Sprintf(`<cpu numaid="%d" affinity="%s" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">`+
			`<pci busid="ffff:0%[1]d:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"><nic><net name="%[3]s" dev="%[1]d" `+
			`speed="10000"/></nic></pci></cpu>`+"\n", k, set.Mask(), netns.Device(k))
	}
	file := filepath.Join(t.TempDir(), "topo.xml")
	if err := os.WriteFile(file, []byte(text+"</system>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
