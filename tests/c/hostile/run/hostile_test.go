// Package run builds the programs of tests/c/hostile as C and as C++ and runs their cases against the built library, each in a
// process of its own, because what they try used to end the process: calls at the wrong moment, limits that leave no room.
//
// It is called by `make test`; without built libraries it skips. HCCL_LIB names another folder of libraries, CC and CXX the
// compilers. It is not for what a well-behaved program sees: tests/c has that.
package run

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	root  = "../../../.."
	limit = 60 * time.Second
)

var programs = map[string][]string{
	"life": {"used_while_made", "failed_init_is_told", "destroyed_while_made", "one_gives_up", "ended_while_used", "alone",
		"counts_that_differ", "used_in_its_own_group"},
	"limits": {"address_space", "descriptors", "threads", "file_size", "arena"},
}

func TestHostile(t *testing.T) {
	lib := libraries(t)
	for _, l := range []struct{ variable, preset, kind, std string }{{"CC", "cc", "c", "gnu11"}, {"CXX", "c++", "c++", "gnu++17"}} {
		for name, cases := range programs {
			t.Run(l.kind+"/"+name, func(t *testing.T) {
				binary := build(t, lib, env(l.variable, l.preset), l.kind, l.std, name)
				for _, c := range cases {
					t.Run(c, func(t *testing.T) { start(t, binary, c) })
				}
			})
		}
	}
}

// libraries is the folder of the built objects.
func libraries(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(env("HCCL_LIB", root+"/build/lib"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libnccl.so.2", "libhccl_core.so"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Skipf("%s is not built: run make first", name)
		}
	}
	return folder
}

func env(name, preset string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return preset
}

func build(t *testing.T, lib, compiler, kind, std, name string) string {
	t.Helper()
	words := strings.Fields(compiler)
	if _, err := exec.LookPath(words[0]); err != nil {
		t.Skipf("no compiler %s: install it or set CC and CXX", words[0])
	}
	binary := filepath.Join(t.TempDir(), name)
	args := append(words[1:], "-x", kind, "-std="+std, "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"+root+"/include",
		"../"+name+".c", "-x", "none", "-o", binary, "-L"+lib, "-lnccl", "-Wl,-rpath,"+lib)
	if out, err := exec.Command(words[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", words[0], strings.Join(args, " "), err, out)
	}
	return binary
}

func start(t *testing.T, binary, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, binary, name).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(binary), name, err, out)
	}
}
