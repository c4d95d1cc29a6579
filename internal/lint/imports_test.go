package lint

import (
	"strconv"
	"strings"
	"testing"
)

// arrows is the architecture: what a folder may import of this module, besides itself and the folders below it. Imports go one
// way, capi -> core -> {proto -> graph, net, shm, device} -> internal. A new arrow is a design decision.
var arrows = []struct {
	from string
	to   []string
}{
	{"capi", []string{"core", "device", "graph", "shm", "net", "internal"}}, // below core only the hooks that it sets as the core is loaded
	{"core", []string{"proto", "graph", "net", "shm", "device", "internal"}},
	{"proto", []string{"graph", "device", "internal"}},
	{"graph", []string{"internal"}},
	{"net", []string{"proto", "device", "internal"}}, // of proto only the words of a port: Tag, Kind, ErrTag
	{"shm", []string{"proto", "device", "internal"}}, // likewise
	{"device", []string{"internal"}},
	{"internal", []string{"internal"}},
	{"cmd", []string{"graph", "internal"}}, // the tool goes through the public C interface; topology is data, and has no C interface
	{"bench", nil},
	{"tests", []string{"internal"}},
	{"examples", nil}, // of this module only package hccl, as any program
	{"python", nil},
	{".", []string{"core", "device", "internal"}},
}

// testsToo is what tests of any folder may import besides: real memory, the conformance suite and the test kit.
var testsToo = []string{"device", "internal", "proto"}

// foreign is what the shared objects may depend on outside the standard library.
var foreign = []string{"golang.org/x/sys", "github.com/NVIDIA/go-nvml", "github.com/mattn/go-pointer", "gonum.org/v1/gonum/graph"}

func TestImportsGoOneWay(t *testing.T) {
	for _, s := range sources(t, isGo) {
		for _, im := range s.ast.Imports {
			name, err := strconv.Unquote(im.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			inside, own := strings.CutPrefix(name, module+"/")
			switch {
			case own && !mayImport(s, inside):
				t.Errorf("%s:%d imports %s: %s may import only %v; move the code, or widen the table in internal/lint and say why",
					s.path, s.line(im.Pos()), inside, top(s.dir), allowed(s))
			case !own && s.inCore() && strings.Contains(strings.Split(name, "/")[0], ".") && !under(name, foreign):
				t.Errorf("%s:%d imports %s: the shared objects depend only on the standard library and %v", s.path, s.line(im.Pos()), name, foreign)
			}
		}
	}
}

func TestEveryFolderHasItsArrows(t *testing.T) {
	for _, s := range sources(t, isGo) {
		if allowedFrom(top(s.dir)) == nil {
			t.Errorf("%s: no line for %s in the table of imports; add one with the folder to internal/lint", s.path, top(s.dir))
		}
	}
}

func mayImport(s *source, inside string) bool {
	return under(inside, []string{top(s.dir)}) || under(inside, allowed(s))
}

func allowed(s *source) []string {
	to := allowedFrom(top(s.dir))
	if to == nil {
		return nil
	}
	if s.test() {
		return append(append([]string(nil), *to...), testsToo...)
	}
	return *to
}

func allowedFrom(folder string) *[]string {
	for k := range arrows {
		if arrows[k].from == folder {
			return &arrows[k].to
		}
	}
	return nil
}

func top(dir string) string { return strings.Split(dir, "/")[0] }

func under(name string, folders []string) bool {
	for _, f := range folders {
		if name == f || strings.HasPrefix(name, f+"/") {
			return true
		}
	}
	return false
}

// Where the language's guard rails may be left: C and unsafe are kept in few places, so that a reader knows where to look.
var (
	mayCgo = []string{"capi", "core/boot/root", "device/host", "device/cuda", "graph/gpus", "internal/params", "internal/testkit", "net/ib",
		"net/plugin", "net/registration", "shm/fast", "cmd/hccl", "tests/gohost"}
	mayUnsafe = mayCgo
)

func TestCgoAndUnsafeAreKeptInFewPlaces(t *testing.T) {
	for _, s := range sources(t, isGo) {
		for _, im := range s.ast.Imports {
			switch im.Path.Value {
			case `"C"`:
				if !under(s.dir, mayCgo) {
					t.Errorf(`%s:%d imports "C": only %v may`, s.path, s.line(im.Pos()), mayCgo)
				}
			case `"unsafe"`:
				named := strings.HasSuffix(s.path, "_unsafe.go") || strings.HasSuffix(s.path, "_unsafe_test.go")
				if !named && !under(s.dir, mayUnsafe) {
					t.Errorf("%s:%d imports unsafe: put what needs it into a small file *_unsafe.go", s.path, s.line(im.Pos()))
				}
			}
		}
	}
}
