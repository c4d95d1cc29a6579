package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What stands in a box ```text of these pages is output. The fixed parts of each line must be in the sources: literals of Go, C and
// Python, cut where values are put in, and texts of the system. What is left of a line are values: numbers, names of files, or words
// that are literals of their own, such as a type's name.

var (
	verb    = regexp.MustCompile(`%[-+# 0]*[0-9*.]*(?:ll|l|z|h)?[a-zA-Z%]|\{[^{}]*\}|@`)
	strC    = regexp.MustCompile(`"((?:[^"\\\n]|\\.)*)"`)
	joinedC = regexp.MustCompile(`"[ \t]*\n?[ \t]*(?:rf|fr|f|r)?"`)
	plain   = regexp.MustCompile(`^[a-z]{3,}$`)

	result   = regexp.MustCompile("(?m)^\\| \\d+ `nccl[A-Za-z]+` \\|[^|]*\\| ([^|]+?) \\|")
	lettered = regexp.MustCompile(`[a-zA-Z]{2}`)
)

// wording is what the sources can say.
type wording struct {
	parts []string        // fixed parts of several words, the longer first
	words map[string]bool // literals of one word
}

func sources(t *testing.T) wording {
	t.Helper()
	parts := map[string]bool{}
	words := map[string]bool{"list": true, "rign": true} // a type of Python's; what a user had written
	add := func(text string) {
		words[text] = true
		for _, part := range verb.Split(text, -1) {
			if strings.Contains(part, " ") && lettered.MatchString(part) {
				parts[part] = true
			}
		}
	}
	for _, folder := range []string{"core", "capi", "shm", "net", "proto", "internal", "device", "python/hccl", "cmd/hccl"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			switch filepath.Ext(name) {
			case ".go":
				return literals(name, add)
			case ".c", ".h", ".py":
				b, err := os.ReadFile(name)
				for _, found := range strC.FindAllStringSubmatch(joinedC.ReplaceAllString(string(b), ""), -1) {
					add(found[1])
				}
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for e := syscall.Errno(1); e < 134; e++ {
		add(e.Error())
		add(strings.ToUpper(e.Error()[:1]) + e.Error()[1:]) // as C writes it
	}
	add("cannot open shared object file") // the loader's
	all := make([]string, 0, len(parts))
	for part := range parts {
		all = append(all, part)
	}
	sort.Slice(all, func(a, b int) bool { return len(all[a]) > len(all[b]) })
	return wording{all, words}
}

// literals adds the texts of a Go file, of which those joined by + are one.
func literals(name string, add func(string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := joined(e)
		if ok {
			add(text)
		}
		return !ok
	})
	return nil
}

func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		a, one := joined(e.X)
		b, two := joined(e.Y)
		return a + b, one && two && e.Op == token.ADD
	}
	return "", false
}

// strange returns the words of a line that no source has.
func (w wording) strange(line string) (words []string) {
	for _, part := range w.parts {
		line = strings.ReplaceAll(line, part, "\x00")
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("\x00 ,:;()\"'", r) }) {
		if plain.MatchString(word) && !w.words[word] {
			words = append(words, word)
		}
	}
	return words
}

// begins reports whether a message begins with this text.
func (w wording) begins(text string) bool {
	for _, part := range w.parts {
		if strings.HasPrefix(part, text) {
			return true
		}
	}
	return false
}

func TestQuotedTextsAreTheLibrarys(t *testing.T) {
	said := sources(t)
	lines := 0
	for _, p := range []page{read(t, "docs/troubleshooting.md"), read(t, "docs/containers.md")} {
		for _, box := range block.FindAllStringSubmatch(p.text, -1) {
			if box[1] != "text" {
				continue
			}
			for _, line := range strings.Split(strings.TrimSpace(box[2]), "\n") {
				lines++
				if words := said.strange(line); words != nil {
					t.Errorf("%s quotes a text that the sources no longer have (they lack %q):\n%s", p.path, words, line)
				}
			}
		}
	}
	for _, row := range result.FindAllStringSubmatch(read(t, "docs/troubleshooting.md").text, -1) {
		lines++
		if !said.begins(row[1]) {
			t.Errorf("docs/troubleshooting.md gives a result the text %q, which no source has", row[1])
		}
	}
	if lines < 60 {
		t.Errorf("only %d lines were compared: the test is blind", lines)
	}
}

// The comparison sees a text that has changed.
func TestStrangeWordsAreSeen(t *testing.T) {
	said := sources(t)
	for _, line := range []string{"rank 1 is lost: its process has ended", "the ranks do not agree in operation 1",
		"an id was used already, make a new one"} {
		if said.strange(line) == nil {
			t.Errorf("%q is found in the sources, which do not have it", line)
		}
	}
}
