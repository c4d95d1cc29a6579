package regular_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hccl.dev/hccl/internal/regular"
)

func TestRead(t *testing.T) {
	folder := t.TempDir()
	file, pipe, long := filepath.Join(folder, "file"), filepath.Join(folder, "pipe"), filepath.Join(folder, "long")
	if err := os.WriteFile(file, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<40); err != nil { // a hole: it would not fit into memory
		t.Fatal(err)
	}
	if text, err := regular.Read(file, 8); err != nil || string(text) != "12345678" {
		t.Errorf("%q, %v", text, err)
	}
	for name, says := range map[string]string{
		folder:       "it is no regular file",
		pipe:         "it is no regular file", // a pipe that nobody writes to: an ordinary open would wait
		"/dev/zero":  "it is no regular file",
		file + "x":   "no such file",
		long:         "it has more than 8 bytes",
		file + "/at": "not a directory",
	} {
		if _, err := regular.Read(name, 8); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v, want %s", name, err, says)
		}
	}
}
