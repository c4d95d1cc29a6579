package hccl_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"hccl.dev/hccl"
)

// A rank of a C program, which loads the shared library, works with ranks of this one.
func TestRanksOfTheLibrary(t *testing.T) {
	lib := os.Getenv("HCCL_LIB")
	if lib == "" {
		t.Skip("HCCL_LIB does not say where the library has been built: make test does")
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	program := filepath.Join(t.TempDir(), "rank")
	build := exec.Command(cc, "-std=gnu11", "-Wall", "-Werror", "-Iinclude", "-o", program, "testdata/rank/rank.c", "-L"+lib, "-lnccl",
		"-Wl,-rpath,"+lib)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	over(t, func(t *testing.T) {
		id := newID(t)
		other := exec.Command(program, id.Text(), "1", "3")
		said := make(chan string, 1)
		go func() {
			out, err := other.CombinedOutput()
			said <- fmt.Sprintf("%s%v", out, err)
		}()
		must(t, make([]*hccl.Comm, 2), rankOf(id, 3, func(c *hccl.Comm) error {
			return first(sumOfRanks(c, 1), sumOfRanks(c, 100000))
		}))
		if got := <-said; got != "3\n3\n<nil>" {
			t.Errorf("the C program says %q", got)
		}
	})
}
