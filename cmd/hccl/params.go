package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/internal/params"
)

// setting is a row of hccl params, by the names of its JSON form.
type setting struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Default  string `json:"default"`
	Source   string `json:"source"` // environment, file:line or default
	Effect   string `json:"effect"`
	Accepted string `json:"accepted"`
	Text     string `json:"text"`
}

// paramsCommand lists the settings. They are those of the library that this tool was built with, read in its way: the tables of
// internal/params are the same in both.
func paramsCommand() *cobra.Command {
	var onlySet, asJSON bool
	var file string
	cmd := &cobra.Command{
		Use: "params [WORD...]", Short: "lists the settings with value, source and effect, and says what is wrong with them",
		Long: "Lists all settings (or those whose name has one of the words in it): value, where it comes from, and whether it acts. " +
			"What is wrong with the settings, such as a name that is none, stands on stderr, and the exit status is 1 then.",
		RunE: func(cmd *cobra.Command, words []string) error {
			if file != "" {
				return checkFile(cmd.OutOrStdout(), file)
			}
			v := params.Look()
			rows := pick(v.All(), words, onlySet)
			if len(rows) == 0 && len(words) > 0 && !onlySet {
				return fmt.Errorf("no setting has %s in its name; hccl params lists all", strings.Join(words, " or "))
			}
			if err := printSettings(cmd.OutOrStdout(), rows, asJSON); err != nil {
				return err
			}
			return problems(v.Problems())
		},
	}
	cmd.Flags().BoolVar(&onlySet, "set", false, "only what is set somewhere")
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON")
	cmd.Flags().StringVar(&file, "check", "", "say what is wrong with a settings `FILE`, and list nothing")
	return cmd
}

func pick(all []params.Setting, words []string, onlySet bool) []setting {
	rows := []setting{}
	for _, s := range all {
		if onlySet && s.Place == "" || !has(s.Knob.Name, words) {
			continue
		}
		row := setting{Name: s.Knob.Name, Value: s.Value, Default: s.Knob.Default, Source: s.Place, Effect: s.Knob.Effect.String(),
			Accepted: s.Knob.Range, Text: s.Knob.Text}
		if s.Bad != "" {
			row.Source = "default, for " + s.Place + " is refused"
		} else if s.Place == "" {
			row.Source = s.Source.String()
		}
		rows = append(rows, row)
	}
	return rows
}

func has(name string, words []string) bool {
	for _, w := range words {
		if strings.Contains(name, strings.ToUpper(w)) {
			return true
		}
	}
	return len(words) == 0
}

func printSettings(out io.Writer, rows []setting, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVALUE\tSOURCE\tEFFECT\tTEXT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, shownValue(r), r.Source, r.Effect, r.Text)
	}
	return w.Flush()
}

// shownValue keeps a value to its column: blanks at an end, and an empty one, need quotes to be seen.
func shownValue(r setting) string {
	switch {
	case r.Value == "" && r.Source == params.Default.String():
		return "-"
	case r.Value == "" || strings.TrimSpace(r.Value) != r.Value || strings.ContainsFunc(r.Value, func(c rune) bool { return c < ' ' }):
		return fmt.Sprintf("%q", r.Value)
	}
	return r.Value
}

func checkFile(out io.Writer, file string) error {
	texts := params.Check(file)
	if texts == nil {
		fmt.Fprintf(out, "%s is in order\n", file)
	}
	return problems(texts)
}

// problems makes one error of several sentences, each on a line of its own.
func problems(texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "\nhccl: "))
}
