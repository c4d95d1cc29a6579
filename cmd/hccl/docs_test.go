package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the flags into docs/tool.md anew")

// The page ends with the flags as --help tells them.
func TestDocsHaveAllFlags(t *testing.T) {
	const path, mark = "../../docs/tool.md", "-update -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, is, ok := strings.Cut(string(b), mark)
	is, foot, _ := strings.Cut(is, "\n---\n") // which leads to other pages
	foot = "\n---\n" + foot
	if !ok {
		t.Fatalf("%s has no line that ends with %q", path, mark)
	}
	var want bytes.Buffer
	for _, words := range [][]string{{"perf"}, {"run"}} {
		c, _, err := command().Find(words)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "\n### %s\n\n", c.CommandPath())
		for line := range strings.Lines(c.LocalFlags().FlagUsages()) {
			want.WriteString("    " + strings.TrimRight(strings.TrimPrefix(line, "  "), " \n") + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+mark+want.String()+foot), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if is != want.String() {
		t.Errorf("%s does not have the flags as they are: go test ./cmd/hccl -run TestDocs -update", path)
	}
}
