package core

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/testkit"
)

// ids is the process that makes this binary's unique ids.
var ids *testkit.Maker

// program is the maker's.
var program string

// A test that needs ranks in other processes starts this binary again with a role in the environment. The two talk by lines: see
// processes_test.go.
const roleVariable = "HCCL_CORE_TEST_ROLE"

var roles = map[string]func(in *bufio.Scanner, args []string) error{"rank": rankRole, "host": hostRole, "pool": poolRole,
	"sign": signRole}

func TestMain(m *testing.M) {
	flag.Parse()
	if role := strings.Fields(os.Getenv(roleVariable)); len(role) > 0 {
		if err := roles[role[0]](bufio.NewScanner(os.Stdin), role[1:]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if fuzz := flag.Lookup("test.fuzz"); fuzz.Value.String() != "" { // needs no ranks, and keeps goroutines of its own
		os.Exit(m.Run())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "core")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "root")
	if err := testkit.Build("..", program, "boot/testdata/root/root.c", nil, testkit.RootFiles...); err != nil {
		panic(err)
	}
	if ids, err = testkit.StartMaker(program); err != nil {
		panic(err)
	}
	defer ids.End()
	before := steadyState()
	code := m.Run()
	if code == 0 {
		if err := before.Balanced(5 * time.Second); err != nil {
			fmt.Println("left behind by the tests:", err)
			return 1
		}
	}
	return code
}

// steadyState makes one communicator over each transport, so that what the process keeps for ever is there, and takes the books.
func steadyState() testkit.Books {
	for _, disable := range []string{"0", "1"} {
		t := &testing.T{}
		testkit.SetAlways("NCCL_SHM_DISABLE", disable)
		w := newWorld(t, 2)
		buf := make([]byte, 1)
		if h, err := w.comms[0].Register(device.BytesPtr(buf), 1); err == nil {
			_ = w.comms[0].Deregister(h)
		}
		w.destroy()
	}
	testkit.SetAlways("NCCL_SHM_DISABLE", "")
	return testkit.Count()
}
