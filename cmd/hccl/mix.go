package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// entry is one line of a mix: a call and how often a step does it.
type entry struct {
	subject
	bytes, times int
}

const (
	mostEntries  = 1000
	mostTimes    = 1 << 20
	mostMixBytes = 1 << 20 // of the file
)

func readMix(path string, ranks int) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--mix: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostMixBytes+1))
	if err != nil {
		return nil, fmt.Errorf("--mix: %w", err)
	}
	mix, err := parseMix(string(text), ranks)
	if err != nil {
		return nil, fmt.Errorf("--mix %s, %w", path, err)
	}
	return mix, nil
}

// parseMix reads the lines of a mix; errors name the line.
func parseMix(text string, ranks int) (mix []entry, err error) {
	if len(text) > mostMixBytes {
		return nil, fmt.Errorf("line 1: the file is longer than %d bytes", mostMixBytes)
	}
	for k, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		e, err := parseEntry(words, ranks)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", k+1, err)
		}
		if mix = append(mix, e); len(mix) > mostEntries {
			return nil, fmt.Errorf("line %d: there may be %d calls", k+1, mostEntries)
		}
	}
	if len(mix) == 0 {
		return nil, fmt.Errorf("line 1: there is no call; a line is: times operation size [type [reduction [root]]]")
	}
	return mix, nil
}

func parseEntry(words []string, ranks int) (e entry, err error) {
	if len(words) < 3 || len(words) > 6 {
		return e, fmt.Errorf("want: times operation size [type [reduction [root]]]")
	}
	if e.times, err = strconv.Atoi(words[0]); err != nil || e.times < 1 || e.times > mostTimes {
		return e, fmt.Errorf("%s: want how often a step does it, from 1 to %d", words[0], mostTimes)
	}
	op := operationNamed(words[1])
	if op == nil {
		return e, noSuch("operation", words[1], operationNames())
	}
	var bytes size
	if err := bytes.Set(words[2]); err != nil {
		return e, fmt.Errorf("%s: %w", words[2], err)
	}
	e.bytes = int(bytes)
	given := []string{"float", "sum", "0"}
	for k, word := range words[3:] {
		if word != "-" {
			given[k] = word
		}
	}
	found, err := subjects(op, given[0], given[1], given[2], ranks)
	if err != nil {
		return e, err
	}
	if len(found) != 1 {
		return e, fmt.Errorf("all: a line is one call; write a line for each")
	}
	e.subject = found[0]
	return e, nil
}
