package tcp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

func TestGoodbyeComesBehindEverythingCommitted(t *testing.T) {
	eachWay(t, 3, func(t *testing.T, nodes []*node) {
		var ins []proto.In
		for c := range 3 {
			out := outOf(t, nodes[0], proto.Pair, c, 1)
			ins = append(ins, inOf(t, nodes[1], proto.Pair, c, 0))
			for i := range slots {
				if !put(t, out, content(c, i, 100_000)) {
					t.Fatal("no room")
				}
			}
		}
		if err := nodes[0].Control(1, []byte("last words")); err != nil {
			t.Fatal(err)
		}
		nodes[0].Close(hang)
		for c, in := range ins {
			for i := range slots {
				nodes[1].until(t, "slice of a rank that left", func() bool {
					b, ok := get(t, in)
					if ok && string(b) != string(content(c, i, 100_000)) {
						t.Fatalf("slice %d of channel %d differs", i, c)
					}
					return ok
				})
			}
		}
		for _, r := range []int{1, 2} {
			nodes[r].until(t, "goodbye", func() bool { return nodes[r].goneErr(0) != nil })
			wantGone(t, nodes[r].goneErr(0), 0, true)
		}
		if m := nodes[1].heard(0); len(m) != 1 || m[0] != "last words" {
			t.Errorf("heard %q", m)
		}
		_, _, err := ins[0].Peek()
		wantGone(t, err, 0, true)
		_, err = outOf(t, nodes[1], proto.All, 0, 0).Reserve(8, 0)
		wantGone(t, err, 0, true)
		wantGone(t, nodes[2].Control(0, nil), 0, true)
		if err := nodes[0].Control(1, nil); err == nil {
			t.Error("Control after Close has no error")
		}
		if err := nodes[1].Control(2, nil); err != nil {
			t.Errorf("the others cannot speak any more: %v", err)
		}
	})
}

func wantGone(t *testing.T, err error, rank int, orderly bool) {
	t.Helper()
	var gone *GoneError
	if !errors.As(err, &gone) || gone.Rank != rank || gone.Orderly != orderly || (gone.Cause == nil) != orderly {
		t.Errorf("error is %v, want rank %d gone, orderly %v", err, rank, orderly)
	}
}

func TestConnectionThatEndsWithoutGoodbye(t *testing.T) {
	for name, end := range map[string]func(fd int){
		"end of file": func(fd int) { _ = unix.Close(fd) },
		"half closed": func(fd int) { _ = unix.Shutdown(fd, unix.SHUT_WR) },
		"reset": func(fd int) {
			_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
			_ = unix.Close(fd)
		},
		"in the middle of a slice": func(fd int) {
			h := header{typ: frameData, length: 1000, route: route(1, 0, 1)}
			_, _ = unix.Write(fd, append(encoded(h), 1, 2, 3))
			_ = unix.Close(fd)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newNode(1, 2)
			defer d.Close(0)
			ours, theirs := loopback(t)
			if name == "half closed" {
				defer unix.Close(theirs)
			}
			if err := d.Add(0, ours); err != nil {
				t.Fatal(err)
			}
			end(theirs)
			d.until(t, "end", func() bool { return d.goneErr(0) != nil })
			wantGone(t, d.goneErr(0), 0, false)
			_, _, err := inOf(t, d, proto.Pair, 0, 0).Peek()
			wantGone(t, err, 0, false)
		})
	}
}

func encoded(h header) []byte {
	var b [headerSize]byte
	h.encode(b[:])
	return b[:]
}

func TestBadFramesNameTheRank(t *testing.T) {
	with := func(i int, v byte) []byte {
		b := encoded(header{typ: frameControl})
		b[i] = v
		return b
	}
	from2 := func(h header) []byte { // of rank 2, to rank 1
		h.route = route(1, 2, 1)
		return encoded(h)
	}
	slice := func(seq uint64) []byte { return from2(header{typ: frameData, kind: proto.Msg, seq: seq}) }
	var many []byte
	for i := range slots + 1 {
		many = append(many, slice(uint64(i))...)
	}
	for want, b := range map[string][]byte{
		"wire version 71":    []byte("GET / HTTP/1.1\r\nHost: a-scanner\r\n\r\n" + strings.Repeat("-", headerSize)),
		"unknown type 0":     with(1, 0),
		"unknown type 99":    with(1, 99),
		"no such flow":       with(2, 3),
		"channel 64":         with(4, MaxChannels),
		"reserved bytes":     with(6, 1),
		"at most 2048":       with(9, 9),
		"at most 262144":     encoded(header{typ: frameData, length: MaxSlice + 1}),
		"at most 0":          encoded(header{typ: frameGoodbye, length: 1}),
		"message 1 where 0":  from2(header{typ: frameControl, seq: 1}),
		"1 control messages": from2(header{typ: frameHeard, ack: 1}),
		"without a free":     many,
		"never written":      from2(header{typ: frameAck, kind: proto.All, ack: 1}),
		"2 slices released":  from2(header{typ: frameAck, ack: 2}),
		"behind its":         append(encoded(header{typ: frameGoodbye}), encoded(header{typ: frameAck})...),
	} {
		t.Run(want, func(t *testing.T) {
			d := newNode(1, 3)
			defer d.Close(0)
			ours, theirs := pair(t)
			defer unix.Close(theirs)
			if err := d.Add(2, ours); err != nil {
				t.Fatal(err)
			}
			put(t, outOf(t, d, proto.Pair, 0, 2), []byte("x"))
			if _, err := unix.Write(theirs, b); err != nil {
				t.Fatal(err)
			}
			d.until(t, "end", func() bool { return d.goneErr(2) != nil })
			var bad *FrameError
			if err := d.goneErr(2); !errors.As(err, &bad) || bad.Rank != 2 || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want one with %q", err, want)
			}
		})
	}
}

func TestCloseIsBoundedByDrain(t *testing.T) {
	for _, fill := range []bool{false, true} {
		a := newNode(0, 2)
		ours, theirs := loopback(t)
		if err := a.Add(1, ours); err != nil {
			t.Fatal(err)
		}
		for c := 0; fill && c < 8; c++ { // far more than two sockets take: the other end reads nothing
			for out := outOf(t, a, proto.Pair, c, 1); put(t, out, make([]byte, MaxSlice)); {
			}
		}
		start := time.Now()
		a.Close(50 * time.Millisecond)
		if took := time.Since(start); took > hang/2 {
			t.Errorf("Close took %v", took)
		}
		_ = unix.Close(theirs)
	}
}

func TestControlOvertakesSlices(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	out := outOf(t, nodes[0], proto.Pair, 0, 1)
	for put(t, out, make([]byte, MaxSlice)) { // nobody releases: all slots are in use
	}
	for i := range 100 {
		if err := nodes[0].Control(1, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	nodes[1].until(t, "messages", func() bool { return len(nodes[1].heard(0)) == 100 })
	for i, m := range nodes[1].heard(0) {
		if m != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, m)
		}
	}
}

func TestControlIsBounded(t *testing.T) {
	d := newNode(0, 2)
	defer d.Close(0)
	for range maxQueued/(MaxControl+headerSize) + 1 { // no connection: nobody takes them
		if err := d.Control(1, make([]byte, MaxControl)); err != nil {
			if !strings.Contains(err.Error(), "rank 1 does not read") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("no bound")
}

func TestAddThatFailsClosesTheDescriptor(t *testing.T) {
	d := newNode(0, 2)
	ours, theirs := pair(t)
	defer unix.Close(theirs)
	if err := d.Add(1, ours); err != nil {
		t.Fatal(err)
	}
	for _, rail := range []int{-1, MaxRails} {
		x, y := pair(t)
		if err := d.AddRail(1, rail, x, nil); err == nil {
			t.Errorf("AddRail(%d) has no error", rail)
		}
		if _, err := unix.FcntlInt(uintptr(x), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("AddRail(%d) left the descriptor open", rail)
		}
		_ = unix.Close(y)
	}
	d.Close(0)
	x, y := pair(t)
	if err := d.Add(1, x); err == nil {
		t.Error("Add after Close has no error")
	}
	_ = unix.Close(y)
}

const childEnv = "HCCL_TCP_TEST_CHILD"

// TestKilledProcess has a child write slices without end, and kills it. The child has a forked child of its own that inherits
// nothing: the socket is close-on-exec.
func TestKilledProcess(t *testing.T) {
	ours, theirs := loopback(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(theirs), "socket")}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.ExtraFiles[0].Close()
	d := newNode(0, 2)
	defer d.Close(0)
	if err := d.Add(1, ours); err != nil {
		t.Fatal(err)
	}
	in := inOf(t, d, proto.Pair, 0, 1)
	for i := range 200 {
		d.until(t, "slice of the child", func() bool {
			b, ok := get(t, in)
			if ok && string(b) != string(content(1, i, 50_000)) {
				t.Fatalf("slice %d differs", i)
			}
			return ok
		})
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d.until(t, "end", func() bool { return d.goneErr(1) != nil })
	wantGone(t, d.goneErr(1), 1, false)
	for {
		_, n, err := in.Peek()
		if err != nil {
			wantGone(t, err, 1, false)
			return
		}
		if n != 50_000 {
			t.Fatalf("a slice of %d bytes: what was half sent must not be delivered", n)
		}
		in.Release()
	}
}

func child() {
	switch os.Getenv(childEnv) {
	case "echo", "echo polling":
		echo(os.Getenv(childEnv) == "echo polling")
	case "collect":
		collect()
	case "leave":
		leave()
	case "leave and close":
		leave().Close()
	default:
		pour()
	}
}

// pour writes slices without end.
func pour() {
	d := newNode(1, 2)
	if err := d.Add(0, 3); err != nil {
		panic(err)
	}
	out, err := d.Out(proto.Pair, 0, 0)
	if err != nil {
		panic(err)
	}
	for i := 0; ; {
		p, err := out.Reserve(50_000, 0)
		if err != nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // the parent has ended
		}
		if p == 0 {
			<-d.bell
			continue
		}
		copy(device.Bytes(p, 50_000), content(1, i, 50_000))
		out.Commit(50_000)
		i++
	}
}

// TestFabricsComeAndGo has several threads open, use and close fabrics, so that the background starts and ends with work at hand.
func TestFabricsComeAndGo(t *testing.T) {
	var wait sync.WaitGroup
	for id := range 4 {
		wait.Go(func() {
			for i := range 100 {
				a, b := newNode(0, 2), newNode(1, 2)
				a.polls, b.polls = id%2 == 0, i%2 == 0
				x, y := pair(t)
				if err := errors.Join(a.Add(1, x), b.Add(0, y)); err != nil {
					t.Error(err)
					return
				}
				out, in := outOf(t, a, proto.Pair, 0, 1), inOf(t, b, proto.Pair, 0, 0)
				put(t, out, content(id, i, 5000))
				b.until(t, "slice", func() bool { _, ok := get(t, in); return ok })
				a.Close(hang)
				b.until(t, "goodbye", func() bool { return b.goneErr(0) != nil })
				b.Close(hang)
			}
		})
	}
	wait.Wait()
}

// TestGoodbyeOutlivesAReset closes a fabric that has not read what its peer wrote: the kernel answers that with a reset. What was
// committed, and the goodbye, are in the peer's socket by then and must be read nevertheless.
func TestGoodbyeOutlivesAReset(t *testing.T) {
	for _, late := range []bool{false, true} { // the peer writes before, or after, the socket is closed
		nodes := mesh(t, 2, loopback)
		a, b := nodes[0], nodes[1]
		a.Take()
		b.Take() // neither reads
		b.polls = true
		out, in := outOf(t, a, proto.Pair, 0, 1), inOf(t, b, proto.Pair, 0, 0)
		back := outOf(t, b, proto.Pair, 0, 0)
		for i := range 10 {
			put(t, out, content(0, i, 1000))
		}
		if !late {
			put(t, back, []byte("unread"))
		}
		a.Close(hang)
		if late {
			put(t, back, []byte("unread"))
			put(t, back, []byte("and more"))
		}
		for i := range 10 {
			b.until(t, "slice", func() bool {
				s, ok := get(t, in)
				if ok && string(s) != string(content(0, i, 1000)) {
					t.Fatalf("slice %d differs", i)
				}
				return ok
			})
		}
		b.until(t, "goodbye", func() bool { return b.goneErr(0) != nil })
		wantGone(t, b.goneErr(0), 0, true)
	}
}
