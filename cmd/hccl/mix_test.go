package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestMixIsRead(t *testing.T) {
	mix, err := parseMix("# a step\n\n 4 all_reduce 25M bf16 sum # gradients\n1 AllGather_perf 64K\n2\tbroadcast 4K - - 1\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range mix {
		got += fmt.Sprintln(e.times, e.op.name, e.bytes, e.typ.name, e.red.name, e.rootShown())
	}
	if want := "4 all_reduce 26214400 bfloat16 sum -1\n1 all_gather 65536 float none -1\n2 broadcast 4096 float none 1\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestMixErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "there is no call",
		"# nothing\n":                        "there is no call",
		"\n1 all_reduce":                     "line 2: want: times operation size",
		"0 all_reduce 8":                     "line 1: 0: want how often",
		"1 all_redcue 8":                     "did you mean all_reduce?",
		"1 all_reduce 8X":                    "8X: want a number of bytes",
		"1 all_reduce 8 fp7":                 "fp7: no such element type",
		"1 all_reduce 8 all":                 "a line is one call",
		"1 all_reduce 8 float xor":           "xor: no such reduction",
		"1 reduce 8 float sum 2":             "the root is from 0 to 1",
		"1 reduce 8 float sum 0 more":        "line 1: want: times",
		strings.Repeat("1 reduce 8\n", 1001): "line 1001: there may be 1000 calls",
	} {
		if _, err := parseMix(text, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// Whatever a file holds: an error, or calls within the bounds that read the same when they are written down again.
func FuzzMix(f *testing.F) {
	for _, seed := range []string{"4 all_reduce 25M bf16 sum", "1 alltoall_v 1.5K half - -\n# x",
		"2 reduce 8 f8e4m3 avg 1", "1 gather NaN", "1 a 0x1p4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mix, err := parseMix(text, 4)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Fatalf("names no line: %v", err)
			}
			return
		}
		again := ""
		for _, e := range mix {
			if e.times < 1 || e.bytes < 0 || e.bytes > mostBytes || e.root < 0 || e.root >= 4 {
				t.Fatalf("%+v", e)
			}
			red := e.red.name
			if !e.op.reduces {
				red = "-"
			}
			again += fmt.Sprintln(e.times, e.op.name, e.bytes, e.typ.name, red, e.root)
		}
		if same, err := parseMix(again, 4); err != nil || len(same) != len(mix) {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "8": 8, "512K": 512 << 10, "1.5M": 3 << 19, "64MB": 64 << 20, "2GiB": 2 << 30, "4k": 4096} {
		var s size
		if err := s.Set(text); err != nil || int(s) != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "-1", "K", "8X", "65G", "nan", "inf", "1e3", "0x10", "1_0", "8KM", "99999999999999999999"} {
		var s size
		if s.Set(text) == nil {
			t.Errorf("%s: %d", text, s)
		}
	}
}
