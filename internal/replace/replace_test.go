package replace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a")
	for _, text := range []string{"first", "second"} {
		if err := File(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	held, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if err := File(name, []byte("third")); err != nil {
		t.Fatal(err)
	}
	old := make([]byte, 10)
	if n, _ := held.Read(old); string(old[:n]) != "second" {
		t.Errorf("who has opened the file before reads %q", old[:n])
	}
	for file, says := range map[string]string{folder: "it is no regular file", filepath.Join(folder, "no", "a"): "no such file or directory",
		filepath.Join(folder, strings.Repeat("x", 255)): "file name too long", filepath.Join(name, "a"): "not a directory"} {
		if err := File(file, nil); err == nil || err.Error() != says {
			t.Errorf("%s: %v, want %s", file, err, says)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
}
