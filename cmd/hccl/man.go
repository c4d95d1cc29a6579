package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Manual pages are made from the text of --help, so that the two never differ: one page for each command that has flags or
// subcommands of its own, in section 1. The pages of perf's operations are one, since they have the same flags.

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "writes the manual pages into a folder", Args: cobra.ArbitraryArgs,
		Long: "Writes hccl.1, hccl-perf.1 and so on into FOLDER, which is made where it is not there. The text is that of --help.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name the folder for the pages: hccl man FOLDER")
			}
			return writePages(cmd.Root(), args[0])
		},
	}
}

func writePages(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	for _, c := range append([]*cobra.Command{root}, shown(root)...) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		if err := os.WriteFile(filepath.Join(folder, name+".1"), []byte(manPage(c)), 0o666); err != nil {
			return fmt.Errorf("manual pages: %w", err)
		}
	}
	return nil
}

func shown(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			all = append(all, sub)
		}
	}
	return all
}

// manPage is one command's page, in the macros of man(7).
func manPage(c *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"HCCL\" \"HCCL\"\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n%s", roff(c.UseLine()), paragraphs(longText(c)))
	if subs := shown(c); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, s := range subs {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(s.Name()), roff(s.Short))
		}
	}
	flags := c.NonInheritedFlags()
	manFlags(&b, "OPTIONS", flags)
	manFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n%s", paragraphs(c.Example))
	}
	manSeeAlso(&b, c)
	return b.String()
}

func longText(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		head := "\\-\\-" + roff(f.Name)
		if f.Shorthand != "" {
			head = "\\-" + f.Shorthand + ", " + head
		}
		if f.DefValue != "" && f.DefValue != "false" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s %s\n%s\n", head, roff(value), roff(text))
	})
}

func manSeeAlso(b *strings.Builder, c *cobra.Command) {
	var others []string
	for _, s := range append([]*cobra.Command{c.Root()}, shown(c.Root())...) {
		if s != c {
			others = append(others, fmt.Sprintf("\\fB%s\\fR(1)", roff(strings.ReplaceAll(s.CommandPath(), " ", "-"))))
		}
	}
	fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
}

// paragraphs keeps the lines of indented passages, which are tables and examples.
func paragraphs(text string) string {
	var b strings.Builder
	fixed := false
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != fixed && line != "" {
			b.WriteString(map[bool]string{true: ".PP\n.nf\n", false: ".fi\n"}[indented])
			fixed = indented
		}
		if line == "" {
			b.WriteString(".PP\n")
		} else {
			b.WriteString(roff(line) + "\n")
		}
	}
	if fixed {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff quotes what troff would take for its own.
func roff(text string) string {
	text = strings.NewReplacer("\\", "\\e", "-", "\\-").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = "\\&" + text
	}
	return text
}
