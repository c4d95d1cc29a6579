package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// errWrong is the end of a run with wrong elements: the table has said how many.
var errWrong = errors.New("data were wrong: see the column #wrong")

// die ends the process with an error, from wherever it is known that nothing goes on.
func die(err error) {
	fmt.Fprintf(os.Stderr, "hccl: %v\n", err)
	os.Exit(1)
}

// flagError makes a sentence of what the flag package says.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "unknown shorthand flag: "); ok {
		letter, _, _ := strings.Cut(rest, " in ")
		text = "no flag -" + strings.Trim(letter, "'")
	} else if name, ok := strings.CutPrefix(text, "unknown flag: "); ok {
		text = "no flag " + name
	} else {
		text = strings.TrimPrefix(text, "invalid argument ")
	}
	if what, reason, ok := strings.Cut(text, ": strconv."); ok {
		text = what + ": want " + wanted(reason)
	}
	return fmt.Errorf("%s: see %s --help", text, cmd.CommandPath())
}

// wanted is what a flag takes, by the function that has refused a word.
func wanted(reason string) string {
	kind := "a whole number"
	switch function, _, _ := strings.Cut(reason, ":"); function {
	case "ParseFloat":
		kind = "a number"
	case "ParseBool":
		kind = "true or false"
	}
	if strings.HasSuffix(reason, "value out of range") {
		kind += " that is nearer to 0"
	}
	return kind
}

// nothingMore refuses words behind a command that takes none.
func nothingMore(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s: takes flags only, and no %s: see %s --help", cmd.Name(), args[0], cmd.CommandPath())
}

// noSuch names what was not found, and the nearest that is.
func noSuch(kind, name string, known []string) error {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := distance(plain(name), plain(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Errorf("%s: no such %s; did you mean %s?", name, kind, best)
	}
	return fmt.Errorf("%s: no such %s; there are %s", name, kind, list(known))
}

func list(words []string) string { return strings.Join(words, ", ") }

// distance is the number of letters to insert, leave out or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for k := range len(b) {
			next := min(row[k]+1, row[k+1]+1, corner+oneIf(a[i] != b[k]))
			corner, row[k+1] = row[k+1], next
		}
	}
	return row[len(b)]
}
