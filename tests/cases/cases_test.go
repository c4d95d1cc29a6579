// Package cases holds faults that users of collective libraries met, as tests of the built library: each is a kind of fault, named
// by its number (C20 a rank that never comes, C46 a rank that is killed, and so on). It uses nothing but the library and its public
// header.
//
// The cases themselves are programs, tests/c/case_*.c, one for each kind: start-up, containers, disagreement, death, meaning, order,
// exactness, numbers, binary interface, process, streams, cost,
// topology. A program runs ranks as processes under a supervisor of its own, which says
// at a hang what each rank was doing. This package builds the programs, runs them with and without shared memory, gives them the
// surroundings that a case asks for (namespaces, strangers at the port, neighbours that are killed), and kills what does not end.
//
// It is called by `make test`, and by `make soak`, which passes -soak: the repetitions that the cases ask for instead of a few. It
// is skipped with -short. HCCL_LIB names another folder of libraries, CC the compiler.
package cases

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var soak = flag.Bool("soak", false, "repeat as often as the cases ask, not a few times")

const root = "../.."

// limit is for one program. Its own limits are tighter and tell more; the cases ask for 60 s.
func limit() time.Duration {
	if *soak {
		return 20 * time.Minute
	}
	return 2 * time.Minute
}

// bin is where programs are built, once for all tests.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(inFolder(m))
}

func inFolder(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "hccl-cases"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if err := os.Chmod(bin, 0o755); err != nil { // other users run the programs, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// library is the folder of the built objects.
func library(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes: not with -short")
	}
	folder := os.Getenv("HCCL_LIB")
	if folder == "" {
		folder = root + "/build/lib"
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "libnccl.so.2")); err != nil {
		t.Skip("libnccl.so.2 is not built: run make first")
	}
	return folder
}

var built sync.Map // program -> func() error

// build compiles a program of tests/c against the library and returns its path. The library is copied beside it: whoever may run the
// program can read the library, wherever the tree lies.
func build(t *testing.T, program string) string {
	t.Helper()
	folder := library(t)
	once, _ := built.LoadOrStore(program, sync.OnceValue(func() error {
		cc := strings.Fields(os.Getenv("CC"))
		if len(cc) == 0 {
			cc = []string{"cc"}
		}
		if err := copyLibrary(folder); err != nil {
			return err
		}
		args := append(cc[1:], "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"+root+"/include",
			root+"/tests/c/"+program+".c", "-o", filepath.Join(bin, program), "-L"+bin, "-lnccl", "-lm", "-ldl", "-Wl,-rpath,"+bin)
		if out, err := exec.Command(cc[0], args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", cc[0], strings.Join(args, " "), err, out)
		}
		return nil
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, program)
}

var copies sync.Mutex

func copyLibrary(folder string) error {
	copies.Lock()
	defer copies.Unlock()
	for _, name := range []string{"libnccl.so.2", "libhccl_core.so"} {
		to := filepath.Join(bin, name)
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := copyFile(filepath.Join(folder, name), to); err != nil {
			return err
		}
	}
	if err := os.Symlink("libnccl.so.2", filepath.Join(bin, "libnccl.so")); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// command is a program in a process group of its own, with the settings of a path.
func command(ctx context.Context, env []string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), env...)
	if *soak {
		cmd.Env = append(cmd.Env, "CASE_SOAK=1")
	}
	return cmd
}

// run runs a command to its end; anything but success is a failure with all that it said.
func run(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit())
	defer cancel()
	cmd := command(ctx, env, argv...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%s: no end after %v, killed", strings.Join(argv, " "), limit())
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return string(out)
}

// path is how ranks of one host reach each other.
type path struct {
	name string
	env  []string
}

var (
	shared = path{"shared memory", []string{"NCCL_SHM_DISABLE=0"}}
	tcp    = path{"TCP", []string{"NCCL_SHM_DISABLE=1"}}
	both   = []path{shared, tcp}
)

// try runs a case of a program over each path.
func try(t *testing.T, paths []path, program string, args ...string) {
	t.Helper()
	binary := build(t, program)
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) { run(t, p.env, append([]string{binary}, args...)...) })
	}
}

// needsRoot skips a case that makes namespaces or other users' processes.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces, mounts and other users")
	}
	library(t) // to skip before anything is made
}
