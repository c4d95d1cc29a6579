package lint

import (
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"os"
	"path"
	"regexp"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write testdata/long.txt anew")

const (
	mostLines    = 300 // of a file; most have 100 to 250
	mostTest     = 400 // of a file of tests, which are often tables
	mostWidth    = 140 // of a line, tabs counted as one
	mostFunction = 80
	mostComment  = 45 // lines of a package comment
	longList     = "testdata/long.txt"
)

func code(s *source) bool {
	switch path.Ext(s.path) {
	case ".go", ".c", ".h", ".py":
		return !strings.Contains(head(s.text), "DO NOT EDIT")
	}
	return false
}

func head(text string) string { return text[:min(len(text), 200)] }

// Files that are too long already stand in a list with their length: they may shrink.
func TestFilesAreShort(t *testing.T) {
	listed := readLong(t)
	now := map[string]int{}
	for _, s := range sources(t, code) {
		most := mostLines
		if s.test() {
			most = mostTest
		}
		if n := strings.Count(s.text, "\n"); n > most {
			now[s.path] = n
			if n > listed[s.path] && !*update {
				t.Errorf("%s has %d lines, more than %d: split it by subject", s.path, n, max(most, listed[s.path]))
			}
		}
	}
	for name := range listed {
		if now[name] == 0 && !*update {
			t.Errorf("%s is short now, or gone: take it out by go test ./internal/lint -update", name)
		}
	}
	if *update {
		writeLong(t, now)
	}
}

func readLong(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(longList)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var n int
		var name string
		if _, err := fmt.Sscanf(line, "%d %s", &n, &name); err == nil {
			listed[name] = n
		}
	}
	return listed
}

func writeLong(t *testing.T, now map[string]int) {
	t.Helper()
	var lines []string
	for name, n := range now {
		lines = append(lines, fmt.Sprintf("%d %s\n", n, name))
	}
	sort.Slice(lines, func(a, b int) bool { return strings.Fields(lines[a])[1] < strings.Fields(lines[b])[1] })
	if err := os.WriteFile(longList, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLinesAreNarrow(t *testing.T) {
	for _, s := range sources(t, code) {
		for k, line := range strings.Split(s.text, "\n") {
			if n := utf8.RuneCountInString(line); n > mostWidth {
				t.Errorf("%s:%d is %d wide, more than %d: break it", s.path, k+1, n, mostWidth)
			}
		}
	}
}

func TestLongFunctionsSayWhy(t *testing.T) {
	for _, s := range sources(t, func(s *source) bool { return isGo(s) && !s.test() }) {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := s.line(f.End()) - s.line(f.Pos())
			if n > mostFunction && !strings.Contains(f.Doc.Text(), "whole") {
				t.Errorf("%s:%d: %s has %d lines: split it, or say in its comment why it stays whole", s.path, s.line(f.Pos()), f.Name.Name, n)
			}
		}
	}
}

func TestGofmt(t *testing.T) {
	for _, s := range sources(t, isGo) {
		if b, err := format.Source([]byte(s.text)); err != nil || string(b) != s.text {
			t.Errorf("%s is not formatted (%v): gofmt -w %s", s.path, err, s.path)
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	said := map[string]string{}
	for _, s := range sources(t, func(s *source) bool { return isGo(s) && !s.test() }) {
		said[s.dir] += s.ast.Doc.Text()
	}
	for dir, text := range said {
		if n := strings.Count(text, "\n"); n < 1 || n > mostComment {
			t.Errorf("%s: the package comment has %d lines: say what it is, what it is not and who calls it, in 10 to 40 lines", dir, n)
		}
	}
}

// The words are put together here so that this file passes its own test.
var (
	later   = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	owned   = regexp.MustCompile(`TO` + `DO\([^)]+\): .*\b(when|once|after|until)\b`)
	machine = regexp.MustCompile(`(^|[^A-Za-z0-9_.])/(ho` + `me|ro` + `ot|wo` + `rk|Us` + `ers)/[A-Za-z0-9]`)
)

func TestNothingIsLeftForLater(t *testing.T) {
	eachLine(t, func(s *source, k int, line string) {
		if later.MatchString(line) && !owned.MatchString(line) {
			t.Errorf("%s:%d: name an owner and a condition, as in TO"+"DO(name): what, when it can be done; or do it now", s.path, k)
		}
	})
}

func TestNoPathsOfOneMachine(t *testing.T) {
	eachLine(t, func(s *source, k int, line string) {
		if at := machine.FindString(line); at != "" {
			t.Errorf("%s:%d names a path of one machine (%s): make it relative, or a setting", s.path, k, strings.TrimSpace(at))
		}
	})
}

func eachLine(t *testing.T, look func(s *source, k int, line string)) {
	t.Helper()
	for _, s := range sources(t, func(*source) bool { return true }) {
		for k, line := range strings.Split(s.text, "\n") {
			look(s, k+1, line)
		}
	}
}

var linked = regexp.MustCompile(`\]\(([^)#:]+)\)`)

// A link in a document leads to a file of the tree.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, s := range sources(t, func(s *source) bool { return path.Ext(s.path) == ".md" }) {
		for _, found := range linked.FindAllStringSubmatch(s.text, -1) {
			target := path.Join(s.dir, found[1])
			if _, err := os.Stat(root + "/" + target); err != nil {
				t.Errorf("%s leads to %s, which is not there: correct the link, or write the page", s.path, target)
			}
		}
	}
}
