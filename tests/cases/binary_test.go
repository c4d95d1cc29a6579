package cases

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBinary(t *testing.T) {
	kind{
		{"C73 config structs of older headers", "case_binary", both[:1], []string{"configs"}},
		{"C80 non-blocking", "case_binary", both, []string{"nonblocking"}},
	}.test(t)
}

// C75: the names that frameworks look for, however the library is opened. What the list must hold is the business of tests/c/abi.
func TestNames(t *testing.T) {
	binary := build(t, "case_binary")
	for _, env := range [][]string{nil, {"LD_BIND_NOW=1"}} {
		run(t, env, binary, "names", filepath.Join(bin, "libnccl.so.2"), root+"/tests/c/abi/exports.txt")
	}
	out := run(t, []string{"NCCL_DEBUG=WARN"}, binary, "absent")
	if n := strings.Count(out, "WARN ncclCommShrink"); n != 2 {
		t.Errorf("two processes call what is not there yet three times each and log it %d times:\n%s", n, out)
	}
}

// ctypes as a serving engine uses it: by path, with the default mode, then the version and an id.
func TestCtypes(t *testing.T) {
	library(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	build(t, "case_binary") // beside which the library lies
	out := run(t, nil, python, "-c", `import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
version, uid = ctypes.c_int(), ctypes.create_string_buffer(128)
assert lib.ncclGetVersion(ctypes.byref(version)) == 0 and lib.ncclGetUniqueId(uid) == 0
print(version.value)`, filepath.Join(bin, "libnccl.so.2"))
	if strings.TrimSpace(out) != "23203" {
		t.Errorf("version %q, not 23203", out)
	}
}

// C81: one rank loads a library whose ranks speak another version of all layouts.
func TestTwoVersions(t *testing.T) {
	binary := build(t, "case_binary")
	other := t.TempDir()
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for file, change := range map[string][2]string{
		"core/boot/wire.go":  {"wireVersion = 4\n", "wireVersion = 5\n"},
		"proto/wire/wire.go": {"const Version = 3\n", "const Version = 4\n"},
	} {
		replace[filepath.Join(tree, file)] = changed(t, other, filepath.Join(tree, file), change)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "overlay.json"), overlay, 0o644)
	}
	if err == nil { // a copy: a link would be the same library to the loader
		err = copyFile(filepath.Join(bin, "libnccl.so.2"), filepath.Join(other, "libnccl.so.2"))
	}
	if err != nil {
		t.Fatal(err)
	}
	run(t, []string{"GOFLAGS=-overlay=" + filepath.Join(other, "overlay.json")}, "make", "-C", tree, "core", "LIB="+other)
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) {
			run(t, p.env, binary, "build", filepath.Join(bin, "libnccl.so.2"), filepath.Join(other, "libnccl.so.2"))
		})
	}
}

// changed writes a copy of a source file with one change and returns its path.
func changed(t *testing.T, folder, file string, change [2]string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), change[0], change[1], 1)
	if text == string(b) {
		t.Fatalf("%s has no %q: the version is elsewhere now", file, change[0])
	}
	to := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// C59: counts past 2^31 and 2^32. Both ranks hold their buffer at once.
func TestBig(t *testing.T) {
	binary := build(t, "case_exact")
	if !*soak {
		t.Skip("fills 9 GiB: with -soak (make soak)")
	}
	if free := available(t); free < 12<<30 {
		t.Skipf("%d GiB of memory are free, 12 are needed", free>>30)
	}
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) { run(t, p.env, binary, "big") })
	}
}

func available(t *testing.T) uint64 {
	t.Helper()
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	return (uint64(info.Freeram) + uint64(info.Bufferram)) * uint64(info.Unit)
}
