package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes on the command line and in mixes.
type size int

func (s *size) String() string { return sizeText(int(*s)) }
func (s *size) Type() string   { return "bytes" }

// Set takes 8, 512K, 1.5M, 64MB or 2GiB: the units are powers of 1024, as in nccl-tests.
func (s *size) Set(text string) error {
	digits, unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I"), 1.0
	for k, letter := range "KMG" {
		if cut, ok := strings.CutSuffix(digits, string(letter)); ok {
			digits, unit = cut, float64(int(1)<<(10*(k+1)))
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n >= 0) || n*unit > mostBytes || strings.ContainsAny(digits, "EXP_INF") {
		return fmt.Errorf("want a number of bytes up to 64G, such as 8, 512K or 64M")
	}
	*s = size(math.Floor(n * unit))
	return nil
}

// whole is a number within bounds on the command line.
type whole struct {
	at          *int
	least, most int
}

func ranged(at *int, preset, least, most int) *whole {
	*at = preset
	return &whole{at, least, most}
}

func (w *whole) String() string {
	if w.at == nil { // the flag package asks a zero value
		return ""
	}
	return strconv.Itoa(*w.at)
}
func (w *whole) Type() string { return "number" }
func (w *whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < w.least || n > w.most {
		return fmt.Errorf("want a whole number from %d to %d", w.least, w.most)
	}
	*w.at = n
	return nil
}

// duration is a number of seconds on the command line.
type duration struct {
	at          *float64
	least, most float64
}

func (d *duration) String() string {
	if d.at == nil {
		return ""
	}
	return strconv.FormatFloat(*d.at, 'g', -1, 64)
}
func (d *duration) Type() string { return "seconds" }
func (d *duration) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= d.least && n <= d.most) {
		return fmt.Errorf("want a number of seconds from %g to %g", d.least, d.most)
	}
	*d.at = n
	return nil
}
