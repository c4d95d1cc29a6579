package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const limit = 2 * time.Minute // a hang, not a measure: the steps take seconds

var (
	block   = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	section = regexp.MustCompile(`(?m)^## (\d+)\. `)
	named   = regexp.MustCompile("Put this into `([^`]+)`:\n\n$")
	target  = regexp.MustCompile(`(?m)^    make ([a-z]+)$`)
)

// session makes one shell script of a page: its commands in their order, and its files where it says what to put into them. It ends
// at the first command that fails, and says before each section which one begins.
func session(t *testing.T, p page) string {
	t.Helper()
	var script strings.Builder
	script.WriteString("set -eu\n")
	for _, part := range strings.Split(section.ReplaceAllString(p.text, "\x00$1\n"), "\x00") {
		number, _, _ := strings.Cut(part, "\n")
		for _, at := range block.FindAllStringSubmatchIndex(part, -1) {
			language, text := part[at[2]:at[3]], part[at[4]:at[5]]
			if language == "sh" {
				fmt.Fprintf(&script, "echo '== section %s'\n%s", number, text)
				continue
			}
			name := named.FindStringSubmatch(part[:at[0]])
			if name == nil {
				t.Fatalf("%s: what is in this block goes nowhere; write before it: Put this into `NAME`:\n%s", p.path, text)
			}
			fmt.Fprintf(&script, "cat > %s <<'END OF FILE'\n%sEND OF FILE\n", name[1], text)
		}
	}
	return script.String()
}

// checkout is the checkout, or where the libraries under test lie elsewhere a folder that looks like it, with them as what was built.
// The real one is taken if it can be, because Go keeps what it has compiled by its folder.
func checkout(t *testing.T) string {
	t.Helper()
	lib, here := os.Getenv("HCCL_LIB"), absolute(t, root)
	if lib == "" {
		lib = filepath.Join(here, "build/lib")
	}
	lib = absolute(t, lib)
	for _, name := range []string{"lib/libnccl.so.2", "lib/libhccl_core.so", "bin/hccl"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(lib), name)); err != nil {
			t.Skipf("%s is not built: run make first", name)
		}
	}
	if lib == filepath.Join(here, "build/lib") {
		return here
	}
	folder := t.TempDir()
	names, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if n.Name() != "build" {
			link(t, filepath.Join(here, n.Name()), filepath.Join(folder, n.Name()))
		}
	}
	link(t, filepath.Dir(lib), filepath.Join(folder, "build"))
	return folder
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// surroundings are a user's who has just built: a home of their own, nothing set but where Go keeps its files.
func surroundings(t *testing.T) []string {
	t.Helper()
	env := []string{"HOME=" + t.TempDir(), "HCCL_INIT_TIMEOUT=60"}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		ours := strings.HasPrefix(name, "HCCL_") || strings.HasPrefix(name, "NCCL_")
		if !ours && name != "HOME" && name != "LD_LIBRARY_PATH" && name != "PYTHONPATH" {
			env = append(env, v)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	return env
}

// What the page for beginners has typed works as it stands there, and ends with what it promises.
func TestStartRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs programs: not with -short")
	}
	for _, program := range []string{"cc", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", session(t, read(t, "docs/start.md")))
	cmd.Dir, cmd.Env, cmd.WaitDelay = checkout(t), surroundings(t), time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	said := map[string]string{}
	for _, part := range strings.Split(out.String(), "== section ")[1:] {
		number, text, _ := strings.Cut(part, "\n")
		said[number] += text
	}
	promised := map[string][]string{"1": {"NCCL interface 2.32.3"}, "6": {"# Out of bounds values : 0 OK"},
		"7": {"this is HCCL", "shared memory to rank", "HCCL_TIMEOUT"}}
	for r := range 4 {
		promised["3"] = append(promised["3"], fmt.Sprintf("rank %d: 4 8 12 6\n", r))
		promised["4"] = append(promised["4"], fmt.Sprintf("[%d] rank %d [4.0, 8.0, 12.0, 6.0]\n", r, r))
		promised["5"] = append(promised["5"], fmt.Sprintf("rank %d [4 8 12 6]\n", r))
	}
	for number, texts := range promised {
		for _, text := range texts {
			if !strings.Contains(said[number], text) {
				t.Errorf("section %s does not say %q:\n%s", number, text, said[number])
			}
		}
	}
}

// The targets of make that the page names are there; that they work is what all other tests show.
func TestStartNamesTargets(t *testing.T) {
	makefile := "\n" + read(t, "Makefile").text
	found := target.FindAllStringSubmatch(read(t, "docs/start.md").text, -1)
	for _, f := range found {
		if !strings.Contains(makefile, "\n"+f[1]+":") {
			t.Errorf("docs/start.md has typed make %s, which is no target", f[1])
		}
	}
	if len(found) == 0 {
		t.Error("no make in docs/start.md: the test is blind")
	}
}
