package tcp

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto"
)

// What a process has given its sockets arrives though the process ends and the peer reads nothing for seconds, in which the kernel asks
// ever more rarely whether there is room.
func TestSocketsOutlastTheirProcess(t *testing.T) {
	var ends []int
	for _, how := range []string{"leave", "leave and close"} { // side by side: the kernel takes its time
		ours, theirs := loopback(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+how)
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(theirs), "socket")}
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.ExtraFiles[0].Close()
		defer unix.Close(ours)
		ends = append(ends, ours)
	}
	for _, fd := range ends {
		const still = 3 * time.Second // more than it takes until the kernel asks as rarely as it is told for an outage
		testkit.Eventually(t, hang, "time without room", func() bool {
			i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			return time.Duration(i.Last_data_recv)*time.Millisecond > still || i.State == unix.BPF_TCP_CLOSE
		})
		_ = unix.SetNonblock(fd, false)
		if n, err := io.Copy(io.Discard, fdReader(fd)); n < MaxSlice || err != nil {
			t.Errorf("%d bytes came, then %v", n, err)
		}
	}
}

// leave gives a socket more than it takes and leaves the communicator at once.
func leave() *Link {
	d := newNode(1, 2)
	if err := d.Add(0, 3); err != nil {
		panic(err)
	}
	for c := range 8 {
		out, err := d.Out(proto.Pair, c, 0)
		if err != nil {
			panic(err)
		}
		for p, err := out.Reserve(MaxSlice, 0); p != 0 && err == nil; p, err = out.Reserve(MaxSlice, 0) {
			out.Commit(MaxSlice)
		}
	}
	d.Fabric.Close(0)
	return d.links[0]
}
