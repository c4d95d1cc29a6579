package tcp

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// withoutCopies has all nodes of a test send slices of n bytes and more without a copy.
func withoutCopies(tb testing.TB, n int) {
	zeroCopying = n
	tb.Cleanup(func() { zeroCopying = zeroAuto })
}

func TestWithoutCopies(t *testing.T) {
	withoutCopies(t, 1)
	t.Run("sizes", TestSlicesOfEverySizeArriveInOrder)
	t.Run("goodbye", TestGoodbyeComesBehindEverythingCommitted)
	t.Run("rails", func(t *testing.T) { comeAndGo(t, true, 300) })
	t.Run("allocations", TestSlicesAllocateNothing)
}

// TestBuffersComeBack sends more slices than may be pinned: each is sent without a copy, so the kernel gave back those before.
func TestBuffersComeBack(t *testing.T) {
	withoutCopies(t, 1)
	nodes := mesh(t, 2, loopback)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	nodes[0].Take()
	nodes[1].Take()
	const size = 64 << 10
	drive(out, in, nodes[0], nodes[1], 10*zeroPins, size)
	c := nodes[0].rail(1, 0)
	if got := c.direct.Load(); got < 9*zeroPins*size {
		t.Errorf("%d bytes of %d were sent without a copy", got, 10*zeroPins*size)
	}
	testkit.Eventually(t, hang, "end of what the kernel holds", func() bool { // everything has arrived, and is acknowledged soon
		c.link.flush()
		return c.zero.out == 0
	})
}

// On a path within a host the kernel copies at the receiver: it is asked a few times, then no more.
func TestTheThresholdFollowsTheKernel(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	nodes[0].Take()
	nodes[1].Take()
	c := nodes[0].rail(1, 0)
	drive(out, in, nodes[0], nodes[1], 100, zeroFrom/2)
	if n := c.direct.Load(); n != 0 {
		t.Errorf("%d bytes in slices below the threshold were sent without a copy", n)
	}
	drive(out, in, nodes[0], nodes[1], 10*zeroPins, zeroFrom)
	if c.zero.from != zeroNever || c.direct.Load() == 0 {
		t.Errorf("the threshold is %d after %d bytes without a copy, want never", c.zero.from, c.direct.Load())
	}
	before := c.direct.Load()
	drive(out, in, nodes[0], nodes[1], zeroPins, zeroFrom)
	if n := c.direct.Load() - before; n != 0 {
		t.Errorf("%d bytes more were sent without a copy", n)
	}
}

// TestClosingLeavesTheKernelItsPages ends a fabric while the kernel still has slices to send. Their buffers are used again at once, and
// what the peer reads later is what was sent.
func TestClosingLeavesTheKernelItsPages(t *testing.T) {
	withoutCopies(t, 1)
	ours, theirs := loopback(t)
	d := newNode(0, 2)
	if err := d.Add(1, ours); err != nil {
		t.Fatal(err)
	}
	out := outOf(t, d, proto.Pair, 0, 1)
	sent := 0
	for ; sent < slots && put(t, out, content(0, sent, MaxSlice)); sent++ {
	}
	pinned := d.rail(1, 0).zero.out
	if pinned == 0 {
		t.Fatal("the kernel has nothing to send: the test tests nothing")
	}
	d.Close(0)
	scribble()
	whole := readSlices(t, theirs, func(seq uint64, b []byte) {
		if !bytes.Equal(b, content(0, int(seq), MaxSlice)) {
			t.Errorf("slice %d was overwritten on its way", seq)
		}
	})
	if whole == 0 {
		t.Error("no slice arrived whole")
	}
	t.Logf("%d of %d slices arrived whole, %d sends were pinned", whole, sent, pinned)
}

// scribble takes all the buffers that are free and writes over them.
func scribble() {
	var held []*staging.Buf
	for range 200 {
		b := staging.Shared.Get(MaxSlice, false)
		for k := range b.Bytes() {
			b.Bytes()[k] = 0xEE
		}
		held = append(held, b)
	}
	for _, b := range held {
		b.Put()
	}
}

// readSlices reads frames until the end of the stream, and counts the slices that are whole.
func readSlices(t *testing.T, fd int, told func(seq uint64, b []byte)) (whole int) {
	t.Helper()
	_ = unix.SetNonblock(fd, false)
	defer unix.Close(fd)
	r := fdReader(fd)
	for {
		var head [headerSize]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return whole
		}
		var h header
		if bad := h.decode(head[:]); bad != "" {
			t.Fatal(bad)
		}
		b := make([]byte, h.length)
		if _, err := io.ReadFull(r, b); err != nil {
			return whole
		}
		if h.typ == frameData {
			told(h.seq, b)
			whole++
		}
	}
}

type fdReader int

func (r fdReader) Read(b []byte) (int, error) {
	n, err := unix.Read(int(r), b)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// A user without rights may pin no more than its limit: what goes beyond it is copied, and arrives.
func TestALimitOnWhatMayBePinned(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		t.Skip(err)
	}
	sets[unix.CAP_IPC_LOCK/32].Effective &^= 1 << (unix.CAP_IPC_LOCK % 32)
	if err := unix.Capset(&head, &sets[0]); err != nil {
		t.Skip(err)
	}
	var old unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 0, Max: 8 << 20}, &old); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &old, nil) }()
	nodes := mesh(t, 2, loopback)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	nodes[0].Take()
	nodes[1].Take()
	drive(out, in, nodes[0], nodes[1], 10, MaxSlice)
	c := nodes[0].rail(1, 0)
	if c.direct.Load() != 0 || c.zero.from <= zeroFrom {
		t.Errorf("%d bytes were pinned, the threshold is %d", c.direct.Load(), c.zero.from)
	}
}

func TestOtherMessagesOfTheErrorQueue(t *testing.T) {
	done := make([]byte, cmsgData+16)
	done[cmsgData+4], done[cmsgData+6], done[cmsgData+8], done[cmsgData+12] = originZero, codeZeroCopied, 3, 5
	if first, last, copied, ok := zeroDone(done); first != 3 || last != 5 || !copied || !ok {
		t.Errorf("sends %d to %d, copied %v, %v", first, last, copied, ok)
	}
	icmp := bytes.Clone(done)
	icmp[cmsgData+4] = 2
	for _, b := range [][]byte{nil, done[:cmsgData+15], icmp} {
		if _, _, _, ok := zeroDone(b); ok {
			t.Errorf("%x counts as sends that are done", b)
		}
	}
}
