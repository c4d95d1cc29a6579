package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const consumer = `#include <nccl.h>
int main(void) {
  int version = 0;
  return ncclGetVersion(&version) != ncclSuccess || version != NCCL_VERSION_CODE;
}
`

const consumerProject = `cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C)
find_package(hccl 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer hccl::hccl)
`

// must runs a command in a folder and returns what it says.
func must(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("no %s", p)
		}
	}
}

// user is a folder with a program that uses the installed library.
func user(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"consumer.c": consumer, "CMakeLists.txt": consumerProject} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// A user builds against the installed library by find_package, by pkg-config, and after the tree was moved. It is built into a
// folder of its own: other tests use build/ meanwhile.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything anew")
	}
	need(t, "make", "cc")
	libraries(t)
	prefix := filepath.Join(t.TempDir(), "installed")
	must(t, root, "make", "-s", "install", "PREFIX="+prefix, "BUILD="+t.TempDir())
	moved := prefix + " elsewhere"
	if err := os.Rename(prefix, moved); err != nil {
		t.Fatal(err)
	}
	t.Run("cmake", func(t *testing.T) { findPackage(t, moved) })
	if err := os.Rename(moved, prefix); err != nil {
		t.Fatal(err)
	}
	t.Run("pkg-config", func(t *testing.T) { pkgConfig(t, prefix) })
}

func findPackage(t *testing.T, prefix string) {
	need(t, "cmake")
	folder := user(t)
	must(t, folder, "cmake", "-S", ".", "-B", "built", "-DCMAKE_PREFIX_PATH="+prefix)
	must(t, folder, "cmake", "--build", "built")
	must(t, folder, "built/consumer")
}

func pkgConfig(t *testing.T, prefix string) {
	need(t, "pkg-config")
	t.Setenv("PKG_CONFIG_PATH", filepath.Join(prefix, "lib/pkgconfig"))
	for _, module := range []string{"nccl", "hccl"} {
		folder := user(t)
		flags := strings.Fields(must(t, folder, "pkg-config", "--cflags", "--libs", module))
		must(t, folder, "cc", append([]string{"consumer.c", "-o", "consumer", "-Wl,-rpath," + prefix + "/lib"}, flags...)...)
		must(t, folder, "./consumer")
	}
}
