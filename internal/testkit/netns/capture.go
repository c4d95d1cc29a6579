package netns

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Capture is what has crossed a host's cable since it began, as an observer of the network sees it.
type Capture struct {
	lab  *Lab
	fd   int
	bell [2]int // a pipe whose end stops the reader
	wait sync.WaitGroup
	seen [][]byte // packets; to be read after stop
}

// Capture begins to record what crosses a host's cable of a rail, both ways.
func (l *Lab) Capture(host, rail int) *Capture {
	l.t.Helper()
	c := &Capture{lab: l}
	if err := elsewhere(func() error { return c.open(l.Switch(), l.port(host, rail)) }); err != nil {
		l.t.Fatal(err)
	}
	c.wait.Go(c.read)
	return c
}

// elsewhere calls do, which may enter a namespace, on a thread that is not used again. It is not the process's first: where that one is
// /proc/net looks, for whoever asks.
func elsewhere(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- elsewhere(do) // on another, as this one is taken
			return
		}
		done <- do()
	}()
	return <-done
}

func (c *Capture) open(namespace, device string) error {
	ns, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("setns %s: %w", namespace, err)
	}
	nic, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	if err := unix.Pipe2(c.bell[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network order
	if c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		return err
	}
	return unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: nic.Index})
}

func (c *Capture) read() {
	var packet [1 << 17]byte
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}, {Fd: int32(c.bell[0]), Events: unix.POLLIN}}
	for {
		n, _, err := unix.Recvfrom(c.fd, packet[:], 0)
		if err == nil {
			c.seen = append(c.seen, bytes.Clone(packet[:n]))
		} else if fds[1].Revents != 0 {
			return
		} else {
			_, _ = unix.Poll(fds, -1)
		}
	}
}

// Stop ends the recording and returns its packets. All that crossed are there, or the test fails.
func (c *Capture) Stop() [][]byte {
	c.lab.t.Helper()
	unix.Close(c.bell[1])
	c.wait.Wait()
	lost, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil || lost.Drops > 0 {
		c.lab.t.Fatalf("the recording lacks packets: %+v, %v", lost, err)
	}
	unix.Close(c.fd)
	unix.Close(c.bell[0])
	return c.seen
}
