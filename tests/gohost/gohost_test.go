// Package gohost tries the built library in a host program that is itself written in Go: two Go runtimes in one process. It is
// called by `make test`; without built libraries it skips.
package gohost

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func library(t *testing.T) string {
	folder := os.Getenv("HCCL_LIB")
	if folder == "" {
		folder = "../../build/lib"
	}
	lib, _ := filepath.Abs(filepath.Join(folder, "libnccl.so.2"))
	if _, err := os.Stat(lib); err != nil {
		t.Skip("the library is not built: run make")
	}
	return lib
}

// TestThreadsEnd: when a thread of the host ends, the core's runtime must not open it for signals once more.
func TestThreadsEnd(t *testing.T) {
	lib := library(t)
	host := filepath.Join(t.TempDir(), "host")
	if out, err := exec.Command("go", "build", "-o", host, "testdata/host.go").CombinedOutput(); err != nil {
		t.Fatalf("building the host: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, host, lib).CombinedOutput(); err != nil {
		t.Errorf("%v: %.2000s", err, out)
	}
}
