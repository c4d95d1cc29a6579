package core

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/internal/testkit/netns"
)

// The path of a rail goes while nothing is sent: both ranks say so before they need it, and use it again when it is back.
func TestPathOfAnIdleRailGoes(t *testing.T) {
	l := hosts(t, 2)
	first, second := l.Rail(), l.Rail()
	for h := range 2 { // a rail that takes all at once leaves nothing to others
		l.Shape(h, first, 100)
		l.Shape(h, second, 100)
	}
	dir := t.TempDir()
	ranks := onHosts(t, l, []int{0, 1}, 1<<18, "NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE="+filepath.Join(dir, "%p"))
	sums := func() {
		tell(ranks, 2)
		finish(t, ranks, 0, 2)
	}
	bulk := func() uint64 { return l.Sent(0, netns.Device(second)) }
	testkit.Eventually(t, patience, "use of both rails", func() bool { sums(); return bulk() > 1<<20 })
	was, looks := bulk(), 0
	testkit.Eventually(t, patience, "end of the last acknowledgements", func() bool { // which would show what probes are to show
		now := bulk()
		if looks++; now != was {
			was, looks = now, 0
		}
		return looks == 10
	})
	l.Silence(0, second, true)
	told := func() (n int) {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			n += bytes.Count(text, []byte("failed, others take its place"))
		}
		return n
	}
	testkit.Eventually(t, patience, "two warnings", func() bool { return told() == 2 })
	before := bulk()
	sums()
	if n := bulk() - before; n > 64<<10 || told() != 2 {
		t.Errorf("%d bytes were sent by a rail that is gone, %d warnings", n, told())
	}
	l.Silence(0, second, false)
	testkit.Eventually(t, patience, "use of the rail that is back", func() bool { sums(); return bulk() > before+1<<20 })
	disperse(t, ranks)
}
