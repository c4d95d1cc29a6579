package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every flag and every line of the help is in the page.
func TestPagesSayWhatHelpSays(t *testing.T) {
	folder := t.TempDir()
	root := command()
	if err := writePages(root, folder); err != nil {
		t.Fatal(err)
	}
	for _, c := range append([]*cobra.Command{root}, shown(root)...) {
		path := filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := string(b)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "\\-\\-"+roff(f.Name)) {
				t.Errorf("%s: no flag --%s", path, f.Name)
			}
		})
		for line := range strings.Lines(longText(c)) {
			if !strings.Contains(page, roff(strings.TrimRight(line, "\n"))) {
				t.Errorf("%s: no %q", path, line)
			}
		}
		if strings.Count(page, "\n.nf\n") != strings.Count(page, "\n.fi\n") {
			t.Errorf("%s: a table does not end", path)
		}
	}
}

func TestRoffQuotes(t *testing.T) {
	for text, want := range map[string]string{"a-b": "a\\-b", ".dot": "\\&.dot", "'tis": "\\&'tis", "c:\\d": "c:\\ed"} {
		if got := roff(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// The shells' own parsers accept the completion.
func TestCompletionIsWritten(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, text, status := hccl(t, "completion", shell)
		if status != 0 || !strings.Contains(out, "hccl") {
			t.Errorf("%s: status %d, %s", shell, status, text)
		}
	}
	for _, args := range [][]string{{"tcsh"}, {}} {
		out, text, status := hccl(t, append([]string{"completion"}, args...)...)
		if status != 1 || out != "" || !strings.Contains(text, "bash") || !strings.Contains(text, "zsh") {
			t.Errorf("completion %v: status %d, %q, %q", args, status, out, text)
		}
	}
	if out, _, status := hccl(t, "__complete", "perf", "all_reduce", "-d", "b"); status != 0 || !strings.Contains(out, "bfloat16") {
		t.Errorf("status %d, %q", status, out)
	}
}

// A mistyped command is answered with the nearest one.
func TestCommandsAreSuggested(t *testing.T) {
	for word, want := range map[string]string{"prf": "did you mean perf?", "rnu": "there are ", "rn": "did you mean run?",
		"parms": "did you mean params?"} {
		if _, text, status := hccl(t, word); status != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %q lacks %q", word, status, text, want)
		}
	}
}
