package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The forms of nccl-tests' lines (src/common.cu there), as people's scripts look for them.
var (
	deviceForm = regexp.MustCompile(`(?m)^#  Rank +(\d+) Group +\d+ Pid +\d+ on +\S+ device +\d+ \[\S+\] .+$`)
	namesForm  = regexp.MustCompile(`(?m)^# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong$`)
	unitsForm  = regexp.MustCompile(`(?m)^# +\(B\) +\(elements\) +\(us\) +\(GB/s\) +\(GB/s\) +\(us\) +\(GB/s\) +\(GB/s\)$`)
	averageIs  = regexp.MustCompile(`(?m)^# Avg bus bandwidth +: ([\d.e+-]+)`)
	boundsIs   = regexp.MustCompile(`(?m)^# Out of bounds values : (\d+) (OK|FAILED)`)
)

// A parser as people write them: names of the columns from the header, values by their place.
func TestScriptsForNcclTestsReadTheTable(t *testing.T) {
	lib := library(t)
	for _, op := range []string{"all_reduce", "alltoall", "sendrecv_perf"} {
		out, text, status := hccl(t, "perf", op, "--lib", lib, "-b", "1K", "-e", "64K", "-f", "4", "-t", "2", "-g", "1", "-n", "5", "-c", "1")
		if status != 0 || len(deviceForm.FindAllString(out, -1)) != 2 || !unitsForm.MatchString(out) || !averageIs.MatchString(out) {
			t.Fatalf("status %d\n%s%s", status, out, text)
		}
		names := strings.Fields(strings.TrimPrefix(namesForm.FindString(out), "#"))
		rows := 0
		for line := range strings.Lines(out) {
			cells := strings.Fields(line)
			if strings.HasPrefix(line, "#") {
				continue
			}
			rows++
			if len(cells) != len(names) || len(names) != 13 || cells[8] != "0" {
				t.Errorf("%d names, row %q", len(names), line)
			}
			for k, name := range names {
				if _, err := strconv.ParseFloat(cells[k], 64); err != nil && name != "type" && name != "redop" {
					t.Errorf("%s is %q", name, cells[k])
				}
			}
		}
		if rows != 4 || boundsIs.FindStringSubmatch(out)[2] != "OK" ||
			!strings.HasPrefix(out, "# nThread 2 nGpus 1 minBytes 1024 maxBytes 65536 step: 4(factor) ") {
			t.Errorf("%d rows\n%s", rows, out)
		}
	}
}

// What was asked for besides stands after the usual columns.
func TestExtraColumnsStandLast(t *testing.T) {
	out, text, status := hccl(t, "perf", "reduce", "--lib", library(t), "-t", "2", "-b", "8", "-e", "8", "--percentiles",
		"--throughput", "--seconds", "0.01", "-z", "1")
	for line := range strings.Lines(out) {
		if cells := strings.Fields(line); !strings.HasPrefix(line, "#") && (len(cells) != 19 || cells[8] != "0" || cells[12] != "0") {
			t.Errorf("%q", line)
		}
	}
	if status != 0 || !strings.Contains(out, "p50      p99      p50      p99    calls/s    calls/s\n") {
		t.Errorf("status %d\n%s%s", status, out, text)
	}
}

func TestFilesAreWritten(t *testing.T) {
	folder := t.TempDir()
	jsonFile, csvFile := filepath.Join(folder, "j"), filepath.Join(folder, "f")
	out, text, status := hccl(t, "perf", "all_gather_v", "--lib", library(t), "--ranks", "2", "-b", "1K", "-e", "8K", "-d", "all", "-a", "3",
		"--percentiles", "--csv", "-J", jsonFile, "-F", csvFile)
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, text)
	}
	rows := 4 * len(elementTypes)
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll() // which wants as many fields in each
	if err != nil || len(records) != 1+rows || records[1][0] != "all_gather_v" {
		t.Errorf("--csv: %v, %d records\n%s", err, len(records), out)
	}
	b, err := os.ReadFile(csvFile)
	if err != nil {
		t.Fatal(err)
	}
	if records, err := csv.NewReader(bytes.NewReader(b)).ReadAll(); err != nil || len(records) != 3+rows || records[1][5] != " time" {
		t.Errorf("-F: %v, %d records\n%s", err, len(records), b)
	}
	var d document
	if b, err = os.ReadFile(jsonFile); err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil || len(d.Results) != rows || !d.OK || len(d.Ranks) != 2 || d.Ranks[1].PID == 0 {
		t.Fatalf("-J: %v\n%s", err, b)
	}
	for _, r := range d.Results {
		for _, h := range []*documentHalf{r.Apart, r.InPlace} {
			if h == nil || h.Wrong == nil || *h.Wrong != 0 || h.Time <= 0 || *h.P50 > *h.P99 || h.Calls != 20 {
				t.Errorf("%+v: %+v", r, h)
			}
		}
	}
}

func TestMixTellsLinesAndStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mix")
	if err := os.WriteFile(file, []byte("2 all_reduce 64K bf16\n1 alltoall_v 9999 double\n3 reduce 8 int8 max 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"--threads", "--percentiles", "-g2"} {
		out, text, status := hccl(t, "perf", "--mix", file, "--lib", library(t), "-n", "3", how)
		if status != 0 || len(regexp.MustCompile(`(?m)^ .* 0 .* [213]  (all_reduce|alltoall_v|reduce)$`).FindAllString(out, -1)) != 3 ||
			!strings.Contains(out, "# Step of 6 calls: ") {
			t.Errorf("%s: status %d\n%s%s", how, status, out, text)
		}
	}
	idle := build(t, "idle.c")
	_, text, status := hccl(t, "perf", "--mix", file, "--lib", idle, "--threads")
	if status != 1 || !strings.Contains(text, "data were wrong") {
		t.Errorf("wrong data: status %d, %s", status, text)
	}
}

func TestTimesKeepTheirColumn(t *testing.T) {
	for us, want := range map[float64]string{0: "0.00", 99.994: "99.99", 100: "100.0", 9999: "9999.0", 10000: "10000", 1234567: "1234567"} {
		if got := digits(us); got != want || len(got) > 7 {
			t.Errorf("%v: %s, want %s", us, got, want)
		}
	}
}

func TestRanksTimesBecomeOne(t *testing.T) {
	times := []float64{5, 1, 9, 1}
	for how, want := range []float64{5, 4, 1, 9} {
		if got := combined(how, len(times), func(k int) float64 { return times[k] }); got != want {
			t.Errorf("-a %d: %v, want %v", how, got, want)
		}
	}
	samples := make([]float64, 200)
	for k := range samples {
		samples[len(samples)-1-k] = float64(k)
	}
	if p50, p99 := percentiles(samples, 2); p50 != 50 || p99 != 99 {
		t.Errorf("p50 %v, p99 %v", p50, p99)
	}
}

// The bar is for terminals: the tests have none, and there is nothing of it on stderr.
func TestBarIsForTerminals(t *testing.T) {
	if _, text, status := hccl(t, "perf", "all_reduce", "--lib", library(t), "-e", "64", "--threads"); status != 0 || text != "" {
		t.Errorf("status %d, %q", status, text)
	}
	p := &progress{done: 3, total: 6}
	if got := p.bar("all_reduce 1K"); got != "[###############...............] 3 of 6, all_reduce 1K" {
		t.Errorf("%q", got)
	}
}
