package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const machines = "../../graph/testdata/machines/"

// Scripts go by the status: 1 exactly if there are faults.
func TestTopoCheck(t *testing.T) {
	cut := filepath.Join(t.TempDir(), "cut.xml")
	if err := os.WriteFile(cut, []byte("<system version=\"1\">\n<cpu numaid=\"0\""), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file           string
		status, faults int
		line           int
	}{
		{machines + "h100-nvswitch-8nic.xml", 0, 0, 0},
		{machines + "a100-uneven-bridge.xml", 1, 1, 16},
		{cut, 1, 1, 2},
	} {
		out, text, status := hccl(t, "topo", "check", c.file, "--json")
		var got checked
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != c.status || len(got.Faults) != c.faults || text != "" {
			t.Fatalf("%s: status %d, %v, %s %s", c.file, status, err, out, text)
		}
		if got.File != filepath.Base(c.file) || !strings.Contains(out, `"faults": [`) {
			t.Errorf("%s: %s", c.file, out)
		}
		if c.faults > 0 && (got.Faults[0].Line != c.line || got.Faults[0].What == "" || got.Faults[0].Remedy == "") {
			t.Errorf("%s: %+v", c.file, got.Faults[0])
		}
		if plain, _, again := hccl(t, "topo", "check", c.file); again != status || c.faults > 0 && !strings.Contains(plain, got.Faults[0].What) {
			t.Errorf("%s: status %d, %s", c.file, again, plain)
		}
	}
}

func TestTopoSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"topo", "check"}, "name one topology file"},
		{[]string{"topo", "check", "none.xml"}, "none.xml: no such file"},
		{[]string{"topo", "chek"}, "did you mean check?"},
	} {
		if out, text, status := hccl(t, c.args...); status != 1 || !strings.Contains(text, c.says) || out != "" {
			t.Errorf("%v: status %d, %s, want %q", c.args, status, text, c.says)
		}
	}
}
