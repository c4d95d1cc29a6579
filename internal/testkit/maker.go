package testkit

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// IDSize is the size of a unique id: NCCL_UNIQUE_ID_BYTES.
const IDSize = 128

// RootFiles are the files of the shim that a maker is built from.
var RootFiles = []string{"meet.c", "meet_serve.c", "meet_conn.c", "meet_hello.c", "meet_roll.c", "meet_addrs.c", "meet_host.c",
	"sha256.c", "params_source.c", "params_source_file.c"}

// Build compiles a C program with files of the shim and returns its path. root is the repository's, as seen from the test.
func Build(root, out, main string, flags []string, shim ...string) error {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	args := append([]string{"-std=c99", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror"}, flags...)
	args = append(args, "-I"+root+"/capi/shim", "-o", out, main)
	for _, f := range shim {
		args = append(args, root+"/capi/shim/"+f)
	}
	if b, err := exec.Command(cc, append(args, "-lpthread", "-ldl")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v\n%s", main, err, b)
	}
	return nil
}

// Maker is a process that makes ids. It ends with the test.
type Maker struct {
	t    testing.TB
	Cmd  *exec.Cmd
	In   *os.File
	Out  *bufio.Scanner
	life *os.File // its forked children end when this does
	Gone sync.Once
}

// NewMaker starts a program that Build made of core/boot/testdata/root.
func NewMaker(t testing.TB, program string, env ...string) *Maker {
	t.Helper()
	m, err := StartMaker(program, env...)
	if err != nil {
		t.Fatal(err)
	}
	m.t = t
	t.Cleanup(m.End)
	return m
}

// StartMaker is NewMaker for a maker that outlives tests: who starts it ends it.
func StartMaker(program string, env ...string) (*Maker, error) {
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), env...)
	return StartMakerBy(cmd)
}

// StartMakerBy is StartMaker for a program that another one starts, as on a host of a netns.Lab.
func StartMakerBy(cmd *exec.Cmd) (*Maker, error) {
	cmd.Stderr = os.Stderr
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.ExtraFiles = inR, []*os.File{lifeR}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	inR.Close()
	lifeR.Close()
	return &Maker{Cmd: cmd, In: inW, Out: bufio.NewScanner(out), life: lifeW}, err
}

// End kills the process and its forked children.
func (m *Maker) End() {
	m.Kill()
	m.life.Close()
	m.In.Close()
}

// Kill ends the process by SIGKILL. Its exit status has been checked if it ended before.
func (m *Maker) Kill() {
	m.Gone.Do(func() {
		m.Cmd.Process.Kill()
		m.Cmd.Process.Wait()
	})
}

// Ask gives a command, which root.c lists, and returns the answer.
func (m *Maker) Ask(command string) string {
	fmt.Fprintln(m.In, command)
	if !m.Out.Scan() {
		m.fail("the maker of ids died at %q", command)
	}
	return m.Out.Text()
}

// ID makes an id.
func (m *Maker) ID() []byte {
	text := m.Ask("new")
	id, err := hex.DecodeString(text)
	if err != nil || len(id) != IDSize {
		m.fail("no id: %s", text)
	}
	return id
}

func (m *Maker) fail(format string, args ...any) {
	if m.t == nil {
		panic(fmt.Sprintf(format, args...))
	}
	m.t.Helper()
	m.t.Fatalf(format, args...)
}
