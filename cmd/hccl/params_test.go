package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func listSettings(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := paramsCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NCCL_CONF_FILE", file)
	return file
}

// Rows by name, as a script would read them.
func TestParamsAsJSON(t *testing.T) {
	file := settingsFile(t, "HCCL_SHM_SLICE=4096\n")
	t.Setenv("NCCL_BUFFSIZE", "8192")
	t.Setenv("NCCL_IB_HCA", "mlx5_0")
	out, err := listSettings(t, "-J")
	if err != nil {
		t.Fatal(err)
	}
	var rows []setting
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) < 316 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	byName := map[string]setting{}
	for _, r := range rows {
		byName[r.Name] = r
	}
	for name, want := range map[string][3]string{
		"NCCL_BUFFSIZE": {"8192", "environment", "acts"}, "HCCL_SHM_SLICE": {"4096", file + ":1", "acts"}, "NCCL_ALGO": {"", "default", "acts"},
		"NCCL_IB_HCA": {"mlx5_0", "environment", "not yet"}, "NCCL_NVLS_ENABLE": {"", "default", "no effect"},
	} {
		if r := byName[name]; r.Value != want[0] || r.Source != want[1] || r.Effect != want[2] || r.Text == "" {
			t.Errorf("%s: %+v, want %q", name, r, want)
		}
	}
}

func TestParamsShowsWordsAndWhatIsSet(t *testing.T) {
	settingsFile(t, "NCCL_DEBUG_TIMESTAMP_FORMAT='%T '\n")
	out, err := listSettings(t, "timestamp", "--set")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(lines) != 2 || !strings.Contains(lines[1], `"%T "`) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := listSettings(t, "nosuchword"); err == nil || !strings.Contains(err.Error(), "nosuchword") {
		t.Error(err)
	}
}

// What is wrong ends the tool with status 1 and a sentence, in the list and for a file that is checked.
func TestParamsTellsWhatIsWrong(t *testing.T) {
	file := settingsFile(t, "noise\n")
	t.Setenv("NCCL_SOKET_IFNAME", "eth0")
	t.Setenv("NCCL_MAX_NCHANNELS", "abc")
	out, err := listSettings(t, "nchannels")
	if err == nil || !strings.Contains(out, "default, for environment is refused") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{file + ":1: ", "did you mean NCCL_SOCKET_IFNAME?", "NCCL_MAX_NCHANNELS=abc"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if _, err := listSettings(t, "--check", file); err == nil || !strings.Contains(err.Error(), ":1: ") {
		t.Error(err)
	}
	if out, err := listSettings(t, "--check", settingsFile(t, "NCCL_ALGO=ring\n")); err != nil || !strings.Contains(out, "in order") {
		t.Error(out, err)
	}
}
