package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The tool is built once, when the first test asks for it; it then runs as users run it.
var (
	toolFolder string
	toolPath   = sync.OnceValues(func() (string, error) {
		path := filepath.Join(toolFolder, "hccl")
		out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return path, err
	})
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if toolFolder, err = os.MkdirTemp("", "hccl"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(toolFolder) }()
		return m.Run()
	}())
}

func tool(t *testing.T) string {
	t.Helper()
	path, err := toolPath()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func hccl(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), tool(t), args...)
	var out, text bytes.Buffer
	c.Stdout, c.Stderr = &out, &text
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status = exit.ExitCode(); status < 0 {
			t.Logf("hccl %v: %v", args, err) // names the signal
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), text.String(), status
}

// library is the one that was built (HCCL_LIB names another folder), or the test is skipped.
func library(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("HCCL_LIB")
	if folder == "" {
		folder = "../../build/lib"
	}
	path, err := filepath.Abs(filepath.Join(folder, "libnccl.so.2"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("the library is not built: make")
	}
	return path
}

var rowForm = regexp.MustCompile(`(?m)^ +(\d+) +(\d+) +\w+ +\w+ +-?\d+( +[\d.]+ +[\d.]+ +[\d.]+ +\d+){1,2}`)

func TestEveryOperationIsRightOnTheLibrary(t *testing.T) {
	lib := library(t)
	for _, op := range operations {
		for _, more := range [][]string{{"--ranks", "3"}, {"--ranks", "2", "--threads", "-d", "half"}, {"--ranks", "1", "-d", "int8"},
			{"-t", "2", "-g", "2", "-m", "2", "-d", "f8e4m3"}} {
			t.Run(op.name+strings.Join(more, ""), func(t *testing.T) {
				args := append([]string{"perf", op.name, "--lib", lib, "-b", "0", "-e", "70000", "-i", "9997", "-n", "3", "-w", "1"}, more...)
				out, text, status := hccl(t, args...)
				if status != 0 || len(rowForm.FindAllString(out, -1)) != 8 || !strings.Contains(out, "# Avg bus bandwidth") {
					t.Errorf("status %d\n%s%s", status, out, text)
				}
			})
		}
	}
}

func TestReductionsAndTypes(t *testing.T) {
	lib := library(t)
	for _, red := range reductions {
		for _, typ := range elementTypes {
			if !red.takes(&typ) {
				continue
			}
			out, text, status := hccl(t, "perf", "all_reduce", "--lib", lib, "--threads", "--ranks", "3", "-b", "40K", "-e", "40K", "-n", "1",
				"-w", "0", "-o", red.name, "-d", typ.name)
			if status != 0 {
				t.Errorf("%s of %s: status %d\n%s%s", red.name, typ.name, status, out, text)
			}
		}
	}
}

// A library that says success and does nothing must not pass.
func TestWrongDataIsSeen(t *testing.T) {
	idle := build(t, "idle.c")
	for _, op := range operations {
		for _, more := range []string{"--threads", "--threads=false"} {
			out, text, status := hccl(t, "perf", op.name, "--lib", idle, "--ranks", "2", "-b", "1K", "-e", "1K", "-n", "1", more)
			if status != 1 || !strings.Contains(text, "data were wrong") || !strings.Contains(out, "FAILED") {
				t.Errorf("%s: status %d, %s%s", op.name, status, out, text)
			}
		}
	}
}

// A call that fails ends the tool with the library's text, although the other rank waits at a barrier for ever.
func TestFailureIsToldAndEnds(t *testing.T) {
	failing := build(t, "idle.c", "-DFAIL_RANK=1")
	for _, how := range []string{"--threads", "--threads=false"} {
		_, text, status := hccl(t, "perf", "all_reduce", "--lib", failing, "--ranks", "2", how)
		if status != 1 || !strings.Contains(text, "rank 1: the operation failed: it broke") {
			t.Errorf("%s: status %d, %q", how, status, text)
		}
	}
}

// A rank that is killed ends the tool, which names it.
func TestKilledRankIsNamed(t *testing.T) {
	c := exec.CommandContext(t.Context(), tool(t), "perf", "all_reduce", "--lib", library(t), "--ranks", "3", "-e", "8", "-n", "1000000000")
	var text bytes.Buffer
	c.Stderr = &text
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "#  Rank  1 Group  0 Pid %d", &pid)
	}
	if pid == 0 || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Fatalf("no rank 1 to kill: %s", &text)
	}
	if c.Wait() == nil || !strings.Contains(text.String(), "hccl: rank 1 ended with signal: killed") {
		t.Errorf("%s", &text)
	}
}

func TestBadFlagsAreSentences(t *testing.T) {
	for args, want := range map[string]string{
		"-b 8X": "want a number of bytes up to 64G", "-b 65G": "up to 64G", "-n 0": "want a whole number from 1", "-f 0": "from 1",
		"-b 9 -e 8": "the sweep would be empty", "-d fp7": "no such element type", "-o xor": "no such reduction",
		"--ranks 513": "from 0 to 512", "-c -1": "from 0 to 1000", "-q": "no flag -q: see hccl perf all_reduce --help", "more": "flags only",
		"--size 9": "no flag --size", "-G 1": "no CUDA graphs", "--ranks 3 -t 2": "cannot be divided", "-d f8e5m2 --ranks 33": "not exact",
		"--lib /nowhere/libnccl.so.2 --threads": "cannot load the library", "-J /nowhere/x.json --threads": "-J: open /nowhere/x.json",
	} {
		words := append([]string{"perf", "all_reduce"}, strings.Fields(args)...)
		if lib := library(t); !strings.Contains(args, "--lib") {
			words = append(words, "--lib", lib) // whose path may have blanks in it
		}
		_, text, status := hccl(t, words...)
		if status != 1 || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: status %d, %q, want %q", args, status, text, want)
		}
	}
	if _, text, status := hccl(t, "perf", "reduce", "--ranks", "2", "-r", "2"); status != 1 || !strings.Contains(text, "from 0 to 1") {
		t.Errorf("root: status %d, %q", status, text)
	}
}

func TestVersion(t *testing.T) {
	out, text, status := hccl(t, "version", "--lib", library(t))
	if status != 0 || !strings.Contains(out, "NCCL interface 2.32.3, library ") {
		t.Errorf("status %d, %s%s", status, out, text)
	}
}

func build(t *testing.T, source string, flags ...string) string {
	t.Helper()
	lib := filepath.Join(t.TempDir(), "libnccl.so.2")
	args := append([]string{"-shared", "-fPIC", "-I", "../../include", "-o", lib, filepath.Join("testdata", source)}, flags...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return lib
}
