package netns

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// role tells this binary, started on a host, what to do: listen, or dial an address.
const role = "NETNS_TEST_ROLE"

func TestMain(m *testing.M) {
	what, address, _ := strings.Cut(os.Getenv(role), " ")
	switch what {
	case "listen":
		if _, err := net.Listen("tcp", ":4000"); err != nil {
			panic(err)
		}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadByte() // until the test ends
		return
	case "dial":
		if _, err := net.DialTimeout("tcp", address+":4000", time.Second); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Hosts reach each other by each rail until it is cut, and what they send is counted.
func TestHostsAndRails(t *testing.T) {
	l := New(t, 2)
	a, b := l.Rail(), l.Rail()
	l.Decoys()
	l.Shape(0, b, 100)
	listener := l.Command(1, os.Args[0])
	listener.Env = append(os.Environ(), role+"=listen")
	in, _ := listener.StdinPipe()
	out, _ := listener.StdoutPipe()
	if err := listener.Start(); err != nil {
		t.Fatal(err)
	}
	defer listener.Wait()
	defer in.Close()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	reaches := func(rail int) bool {
		c := l.Command(0, os.Args[0])
		c.Env = append(os.Environ(), role+"=dial "+l.Address(1, rail))
		return c.Run() == nil
	}
	before := l.Sent(0, Device(b))
	if !reaches(a) || !reaches(b) || l.Sent(0, Device(b)) == before {
		t.Error("a rail leads nowhere, or is not counted")
	}
	l.Silence(1, a, true)
	l.Link(0, b, false)
	if reaches(a) || reaches(b) {
		t.Error("a rail that was cut carries something")
	}
	l.Silence(1, a, false)
	l.Link(0, b, true)
	for end := time.Now().Add(20 * time.Second); !reaches(a) || !reaches(b); {
		if time.Now().After(end) {
			t.Fatal("a rail that is back leads nowhere")
		}
	}
	if out, err := exec.Command("ip", "netns").Output(); err != nil || !strings.Contains(string(out), l.Host(1)) {
		t.Errorf("%s %v", out, err)
	}
}

// What /proc tells of the process stays true however often a thread has been elsewhere: none of these is the first one.
func TestFirstThreadStays(t *testing.T) {
	var all sync.WaitGroup
	for range 64 { // more than there are threads that wait for work
		all.Go(func() {
			if err := elsewhere(func() error {
				if unix.Gettid() == unix.Getpid() {
					t.Error("on the process's first thread")
				}
				runtime.Gosched()
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
