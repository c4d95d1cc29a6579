package boot

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The programs that TestMain builds from the shim's C.
var rootProgram, shaProgram string

func TestMain(m *testing.M) {
	FDs = books
	if dir := os.Getenv("BOOT_INSIDE"); dir != "" { // a test runs itself in a network namespace
		rootProgram = filepath.Join(dir, "root")
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "boot")
	if err != nil {
		panic(err)
	}
	rootProgram = build(dir, "root", "testdata/root/root.c", "meet.c", "meet_serve.c", "meet_conn.c", "meet_roll.c", "meet_host.c",
		"sha256.c", "params_source.c", "params_source_file.c")
	shaProgram = build(dir, "sha", "testdata/sha/sha.c", "sha256.c")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles a test program with files of the shim, under the sanitizers.
func build(dir, name, main string, shim ...string) string {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	out := filepath.Join(dir, name)
	args := []string{"-std=c99", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-I../../capi/shim", "-o", out, main}
	for _, f := range shim {
		args = append(args, "../../capi/shim/"+f)
	}
	if b, err := exec.Command(cc, append(args, "-lpthread", "-ldl")...).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%s: %v\n%s", name, err, b))
	}
	return out
}

// maker is a process that makes ids.
type maker struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   *os.File
	out  *bufio.Scanner
	life *os.File // its forked children end when this does
	gone sync.Once
}

func newMaker(t *testing.T, env ...string) *maker {
	t.Helper()
	cmd := exec.Command(rootProgram)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	inR, inW, _ := os.Pipe()
	lifeR, lifeW, _ := os.Pipe()
	cmd.Stdin, cmd.ExtraFiles = inR, []*os.File{lifeR}
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	lifeR.Close()
	m := &maker{t: t, cmd: cmd, in: inW, out: bufio.NewScanner(out), life: lifeW}
	t.Cleanup(func() {
		m.kill()
		m.life.Close()
		m.in.Close()
	})
	return m
}

// kill ends the process by SIGKILL. Its exit status has been checked if it ended before.
func (m *maker) kill() {
	m.gone.Do(func() {
		m.cmd.Process.Kill()
		m.cmd.Process.Wait()
	})
}

func (m *maker) ask(command string) string {
	m.t.Helper()
	fmt.Fprintln(m.in, command)
	if !m.out.Scan() {
		m.t.Fatalf("the maker of ids died at %q", command)
	}
	return m.out.Text()
}

func (m *maker) id() []byte {
	m.t.Helper()
	text := m.ask("new")
	id, err := hex.DecodeString(text)
	if err != nil || len(id) != idSize {
		m.t.Fatalf("no id: %s", text)
	}
	return id
}

// within is a limit of so many seconds.
func within(s float64) Limit {
	return Limit{Deadline: time.Now().Add(time.Duration(s * float64(time.Second)))}
}

type outcome struct {
	rank int
	all  [][]byte
	err  error
	took time.Duration
}

// meetAll runs Meet for some ranks at once and returns what each got, by rank.
func meetAll(id []byte, n int, ranks []int, lim func(rank int) Limit) map[int]outcome {
	results := make(chan outcome)
	for _, r := range ranks {
		go func() {
			start := time.Now()
			all, err := Meet(id, r, n, blobOf(r), lim(r))
			results <- outcome{r, all, err, time.Since(start)}
		}()
	}
	out := map[int]outcome{}
	for range ranks {
		o := <-results
		out[o.rank] = o
	}
	return out
}

func same(lim Limit) func(int) Limit { return func(int) Limit { return lim } }

func upTo(n int) []int {
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// blobOf is what rank r has to say: of a length of its own, some 0.
func blobOf(r int) []byte { return []byte(strings.Repeat(fmt.Sprintf("<%d>", r), r*37%300)) }

// wantMet fails unless all n ranks got everybody's blob.
func wantMet(t *testing.T, n int, got map[int]outcome) {
	t.Helper()
	for r, o := range got {
		if o.err != nil {
			t.Fatalf("rank %d of %d: %v", r, n, o.err)
		}
		if len(o.all) != n {
			t.Fatalf("rank %d of %d got %d blobs", r, n, len(o.all))
		}
		for k, b := range o.all {
			if string(b) != string(blobOf(k)) {
				t.Fatalf("rank %d of %d: blob %d is %q", r, n, k, b)
			}
		}
	}
}
