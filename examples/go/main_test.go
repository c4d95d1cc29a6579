package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPi(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pi")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, n := range []string{"1", "3"} {
		out, err := exec.Command(program, "-n", n, "-limit", "30s").CombinedOutput()
		if want := "pi is about 3.141592654, say " + n + " ranks\n"; err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
	}
	out, err := exec.Command(program, "-n", "2", "-limit", "1ns").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "context deadline exceeded") {
		t.Errorf("a limit that has passed: %v, %s", err, out)
	}
}
