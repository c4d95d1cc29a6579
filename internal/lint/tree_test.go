package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	module = "hccl.dev/hccl"
	root   = "../.."
)

// source is one file of the tree. ast is nil for what is not Go.
type source struct {
	path string // from the root, with slashes
	dir  string // its folder: the package's path within the module
	text string
	ast  *ast.File
	set  *token.FileSet
}

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) line(p token.Pos) int {
	return s.set.Position(p).Line
}

// in reports whether the file lies in one of the folders or below.
func (s *source) in(folders ...string) bool {
	for _, f := range folders {
		if s.dir == f || strings.HasPrefix(s.dir, f+"/") {
			return true
		}
	}
	return false
}

// inCore reports whether the file is part of the shared objects, which run in other people's processes.
func (s *source) inCore() bool {
	return !s.test() && s.in(".", "capi", "core", "proto", "graph", "net", "shm", "device", "internal/coll", "internal/cpuset", "internal/log",
		"internal/params") && !s.in("proto/porttest", "internal/params/gen", "graph/gpus/gen") && !strings.Contains(s.path, "/testdata/")
}

var tree = sync.OnceValues(func() (all []*source, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || rel == "build" || d.Name() == "__pycache__") {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !known(rel) {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s := &source{path: rel, dir: path.Dir(rel), text: string(b)}
		if strings.HasSuffix(rel, ".go") {
			s.set = token.NewFileSet()
			s.ast, err = parser.ParseFile(s.set, rel, b, parser.ParseComments|parser.SkipObjectResolution)
		}
		all = append(all, s)
		return err
	})
	return all, err
})

// known tells the files that people write from data.
func known(rel string) bool {
	switch path.Ext(rel) {
	case ".go", ".c", ".h", ".py", ".md", ".sh", ".map", ".cmake", ".txt", ".in", ".yml":
		return true
	}
	return path.Base(rel) == "Makefile" || strings.HasPrefix(rel, ".ci/")
}

func sources(t *testing.T, want func(*source) bool) (some []*source) {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if want(s) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		t.Fatal("no file to look at: the test is blind")
	}
	return some
}

func isGo(s *source) bool   { return s.ast != nil }
func isC(s *source) bool    { return strings.HasSuffix(s.path, ".c") || strings.HasSuffix(s.path, ".h") }
func inCore(s *source) bool { return isGo(s) && s.inCore() }
