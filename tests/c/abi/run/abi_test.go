// Package run drives the C tests of the binary interface: the built objects are read as ELF files, and the programs of tests/c/abi
// are compiled as C and as C++, linked with a copy of the built libnccl.so.2, and run beside a core that only records
// (fake_core.c). So the shim is tested by itself: arguments, handles, groups, structs of other releases, loading, forks.
//
// It is called by `make test`; without built libraries it skips. HCCL_LIB names another folder of libraries, HCCL_CFLAGS more
// flags for the programs (`make asan` uses both), CC and CXX the compilers.
package run

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	root    = "../../../.."
	sources = root + "/tests/c/abi"
	limit   = 60 * time.Second
)

// libraries is the folder of the built objects.
func libraries(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("HCCL_LIB")
	if folder == "" {
		folder = root + "/build/lib"
	}
	if _, err := os.Stat(filepath.Join(folder, "libnccl.so.2")); err != nil {
		t.Skip("libnccl.so.2 is not built: run make first")
	}
	return folder
}

func env(name, preset string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return preset
}

// language is a compiler with the options for its dialect.
type language struct {
	name, kind string
	compiler   []string
	std        string
}

func languages() []language {
	return []language{
		{"C", "c", strings.Fields(env("CC", "cc")), "gnu11"},
		{"C++", "c++", strings.Fields(env("CXX", "c++")), "gnu++17"},
	}
}

// compile calls a compiler with args; nil args ask only whether it is there.
func compile(t *testing.T, l language, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(l.compiler[0]); err != nil {
		t.Skipf("no %s compiler %s: install it or set CC and CXX", l.name, l.compiler[0])
	}
	all := append(append([]string{}, l.compiler[1:]...), args...)
	if out, err := exec.Command(l.compiler[0], all...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", l.compiler[0], strings.Join(all, " "), err, out)
	}
}

func flags() []string { return strings.Fields(os.Getenv("HCCL_CFLAGS")) }

// bench is a folder with a copy of the shim and, if wanted, a recording core.
func bench(t *testing.T, core ...string) string {
	t.Helper()
	folder := t.TempDir()
	shim, err := os.ReadFile(filepath.Join(libraries(t), "libnccl.so.2"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "libnccl.so.2"), shim, 0o755)
	}
	if err == nil {
		err = os.Symlink("libnccl.so.2", filepath.Join(folder, "libnccl.so"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if core != nil {
		args := append([]string{"-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", filepath.Join(folder, "libhccl_core.so"),
			sources + "/fake_core.c"}, core...)
		compile(t, languages()[0], append(args, flags()...)...)
	}
	return folder
}

func build(t *testing.T, l language, folder, name string) string {
	t.Helper()
	binary := filepath.Join(folder, name)
	args := []string{"-x", l.kind, "-std=" + l.std, "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I" + root + "/include",
		filepath.Join(sources, name+".c"), "-x", "none", "-o", binary, "-L" + folder, "-lnccl", "-ldl", "-Wl,-rpath," + folder}
	compile(t, l, append(args, flags()...)...)
	return binary
}

func start(t *testing.T, binary string, args ...string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=schedtrace=1", "GOMAXPROCS=1", "GOGC=7", "GOMEMLIMIT=1GiB", "GOTRACEBACK=crash")
	watch := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer watch.Stop()
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s %s: %v\n%s", filepath.Base(binary), strings.Join(args, " "), err, out)
	}
}

func TestPrograms(t *testing.T) {
	folder := bench(t, "-O1")
	for _, l := range languages() {
		for _, name := range []string{"handles", "arguments", "calls", "groups", "configs", "loading", "forks", "fast", "absent", "parameters",
			"streams", "requests"} {
			t.Run(l.name+"/"+name, func(t *testing.T) {
				start(t, build(t, l, folder, name), map[string][]string{"absent": {folder}}[name]...)
			})
		}
	}
}

func TestCoreMissing(t *testing.T) { startLoading(t, bench(t), "missing") }

func TestCoreOfAnotherBuild(t *testing.T) { startLoading(t, bench(t, "-DFAKE_OTHER_BUILD"), "other") }

func startLoading(t *testing.T, folder, how string) {
	t.Helper()
	start(t, build(t, languages()[0], folder, "loading"), how)
}

// A program that loads the library by a relative path and then goes elsewhere still finds the core.
func TestRelativePath(t *testing.T) {
	folder := bench(t, "-O1")
	binary := build(t, languages()[0], folder, "relative")
	// Under another name, or the loader would take it for the one that the program is linked with.
	apart := bench(t, "-O1")
	if err := os.Rename(filepath.Join(apart, "libnccl.so.2"), filepath.Join(apart, "libcopy.so")); err != nil {
		t.Fatal(err)
	}
	start(t, binary, apart)
}
