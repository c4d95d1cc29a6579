package params

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/log"
)

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "") // has the test put it back
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

func TestLinesOfFiles(t *testing.T) {
	for _, c := range []struct{ text, want, fault string }{ // want: name=value pairs, with | between
		{"", "", ""},
		{"A=1", "A=1", ""},
		{"A=1\nB=2\n", "A=1|B=2", ""},
		{"A=1\r\nB=2\r\n\r\n", "A=1|B=2", ""},
		{"\xef\xbb\xbfA=1\n", "A=1", ""},
		{"  A \t=  1 2 \t\n", "A=1 2", ""},
		{"# A=1\n   # B=2\n\t\nC=3", "C=3", ""},
		{"A=1 # why\nB=#x\nC=a#b\nD= # none", "A=1|B=|C=a#b|D=", ""},
		{`A="[%F %T] "`, "A=[%F %T] ", ""},
		{`A=' x'  # why`, "A= x", ""},
		{`A="it's"`, "A=it's", ""},
		{`A=x"y"`, `A=x"y"`, ""},
		{"A=\n", "A=", ""},
		{"A==b=c", "A==b=c", ""},
		{"A=1\nA=2\n", "A=1", ":2: A stands in line 1 already"},
		{"A\nB=1", "B=1", ":1: this line is not used: there is no ="},
		{"A=1\nexport B=1", "A=1", ":2: this line is not used: what stands before = is no name"},
		{"=1\n1A=1", "", ":2: this line is not used: what stands before = is no name"},
		{`A="1` + "\nB=1", "B=1", ":1: this line is not used: a quote is not closed"},
		{`A="1" 2`, "", ":1: this line is not used: something stands behind"},
		{"A=1\x00\nB=1", "B=1", ":1: this line is not used: there is a zero byte"},
	} {
		path := write(t, filepath.Join(t.TempDir(), "f"), c.text)
		lines, faults := fileAt(path)
		var got []string
		for _, f := range lines {
			got = append(got, f.name+"="+f.text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q is read as %q, want %q", c.text, got, c.want)
		}
		if c.fault == "" && faults != nil || c.fault != "" && !strings.Contains(strings.Join(faults, "\n"), path+c.fault) {
			t.Errorf("%q: faults %q, want %q", c.text, faults, c.fault)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	huge := write(t, filepath.Join(dir, "huge"), "")
	if err := os.Truncate(huge, 8<<20); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "it is no file", filepath.Join(dir, "none"): "No such file", huge: "too large"} {
		if lines, faults := fileAt(path); lines != nil || len(faults) != 1 || !strings.Contains(faults[0], want) {
			t.Errorf("%s: %v, %q, want %q", path, lines, faults, want)
		}
	}
	if lines, faults := fileAt("/dev/null"); lines != nil || faults != nil {
		t.Errorf("/dev/null: %v, %q", lines, faults)
	}
	noise := write(t, filepath.Join(dir, "noise"), strings.Repeat("noise\n", 1000))
	if _, faults := fileAt(noise); len(faults) != 16 {
		t.Errorf("%d faults are kept of a file without sense", len(faults))
	}
}

// The environment goes first, then the file that is named; an empty value hides what stands behind it.
func TestPlaces(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	unset(t, "NCCL_CONF_FILE")
	for _, name := range []string{"NCCL_BUFFSIZE", "HCCL_SHM_SLICE", "NCCL_ALGO", "NCCL_MIN_NCHANNELS"} {
		unset(t, name)
	}
	mine := write(t, filepath.Join(home, ".nccl.conf"), "NCCL_BUFFSIZE=8192\nHCCL_SHM_SLICE=64\nNCCL_MIN_NCHANNELS=x\n")
	named := write(t, filepath.Join(home, "named"), "\n\nNCCL_BUFFSIZE=16384\nNCCL_ALGO=ring\n")
	t.Setenv("HCCL_SHM_SLICE", "128")
	v := read(find)
	if v.BuffSize != 8192 || v.ShmSlice != 128 || v.Place("NCCL_BUFFSIZE") != mine+":1" || v.Place("HCCL_SHM_SLICE") != "environment" {
		t.Errorf("%+v", v)
	}
	if k := slices.IndexFunc(v.settings, func(s Setting) bool { return s.Bad == "x" }); k < 0 || v.settings[k].Place != mine+":3" {
		t.Error("a bad value in a file has no place")
	}
	t.Setenv("NCCL_CONF_FILE", named)
	if v = read(find); v.BuffSize != 16384 || v.Place("NCCL_BUFFSIZE") != named+":3" || v.MinChannels != 0 || v.Algo != "ring" {
		t.Errorf("the file that is named does not take the place of the user's: %+v", v)
	}
	t.Setenv("NCCL_BUFFSIZE", "")
	if v = read(find); v.BuffSize != 4<<20 || v.Place("NCCL_BUFFSIZE") != "default" {
		t.Errorf("an empty value in the environment does not hide the file's: %+v", v)
	}
	t.Setenv("NCCL_CONF_FILE", "")
	if v = read(find); v.Algo != "" || v.ShmSlice != 128 {
		t.Errorf("an empty NCCL_CONF_FILE is not as none: %+v", v)
	}
}

// What is wrong with a file is said once, with its place, and names that are not this library's are no fault.
func TestFaultsOfFilesAreReportedOnce(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "conf"),
		"NCCL_DEBUG=INFO\nnoise\nNCCL_BUFSIZE=1\nCUDA_DEVICE_ORDER=PCI_BUS_ID\nNCCL_IB_HCA=mlx5\nNCCL_CONF_FILE=x\nNCCL_DEBUG_FILE="+dir+"/log\n")
	unset(t, "NCCL_DEBUG")
	unset(t, "NCCL_DEBUG_FILE")
	t.Setenv("NCCL_SOKET_IFNAME", "eth0")
	t.Setenv("NCCL_TESTS_SPLIT", "1")
	t.Setenv("NCCL_CONF_FILE", file)
	t.Cleanup(func() { log.Configure(log.LevelNone, 0, "") })
	Load()
	Load()
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"WARN " + file + ":2: this line is not used":                                                             1,
		"WARN NCCL_BUFSIZE (" + file + ":3) is no setting and has no effect: did you mean NCCL_BUFFSIZE?\n":      1,
		"WARN NCCL_SOKET_IFNAME (environment) is no setting and has no effect: did you mean NCCL_SOCKET_IFNAME?": 1,
		"WARN NCCL_CONF_FILE (" + file + ":6) has no effect in a file":                                           1,
		"settings: NCCL_DEBUG=INFO (" + file + ":1), NCCL_DEBUG_FILE=":                                           1,
		"files read: " + file: 1,
		"set without effect: CUDA_DEVICE_ORDER (" + file + ":4), NCCL_IB_HCA (" + file + ":5)": 1,
		"NCCL_TESTS": 0, "WARN NCCL_IB_HCA": 0, "WARN CUDA": 0,
	} {
		if got := strings.Count(string(b), text); got != want {
			t.Errorf("%q is said %d times, want %d, in\n%s", text, got, want, b)
		}
	}
}

// /etc/nccl.conf and the user's file are the machine's: the test runs itself where it has an /etc of its own.
func TestSystemFile(t *testing.T) {
	if etc := os.Getenv("PARAMS_INSIDE"); etc != "" {
		inside(t, etc)
		return
	}
	etc := t.TempDir()
	write(t, filepath.Join(etc, "nccl.conf"), "NCCL_BUFFSIZE=8192\nNCCL_ALGO=ring\nHCCL_SHM_SLICE=64\n")
	write(t, filepath.Join(etc, "passwd"), "root:x:0:0::"+etc+":/bin/sh\n")
	write(t, filepath.Join(etc, ".nccl.conf"), "NCCL_ALGO=oneshot\nHCCL_SHM_SLICE=\n")
	cmd := exec.Command("unshare", "-rm", "sh", "-c", `mount --bind "$0" /etc || exit 77; exec "$@"`, etc, os.Args[0],
		"-test.run", "^TestSystemFile$", "-test.v")
	cmd.Env = []string{"PARAMS_INSIDE=" + etc, "PATH=" + os.Getenv("PATH"), "GOCOVERDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "=== RUN") {
		t.Skipf("no mount namespace here: %v, %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// inside is run without HOME: the user's folder is the one of the passwd file.
func inside(t *testing.T, etc string) {
	v := read(find)
	if v.BuffSize != 8192 || v.Place("NCCL_BUFFSIZE") != "/etc/nccl.conf:1" {
		t.Errorf("the system's file does not count: %+v", v)
	}
	if v.Algo != "oneshot" || v.Place("NCCL_ALGO") != etc+"/.nccl.conf:1" || v.ShmSlice != 0 {
		t.Errorf("the user's file does not go before the system's: %+v", v)
	}
	t.Setenv("HOME", "/nowhere")
	if v = read(find); v.Algo != "ring" || v.ShmSlice != 64 {
		t.Errorf("HOME does not name the user's folder: %+v", v)
	}
	t.Setenv("NCCL_CONF_FILE", "/dev/null")
	t.Setenv("NCCL_ALGO", "twoshot")
	if v = read(find); v.Algo != "twoshot" || v.BuffSize != 8192 {
		t.Errorf("the environment does not go first, or the system's file not last: %+v", v)
	}
}

// Whatever a file holds, reading it ends with lines that have a name and a value, in order.
func FuzzFile(f *testing.F) {
	for _, s := range []string{"A=1\n", "A = 'x' # y\r\n", "=", "\"", "A=\"", "\xef\xbb\xbf", "A=1\x00B", "#", "A=1\nA=2",
		"A=\n\n\n=B", "A= #"} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "f")
	f.Fuzz(func(t *testing.T, b []byte) {
		lines, faults := fileAt(write(t, path, string(b)))
		last := 0
		for _, l := range lines {
			if l.name == "" || strings.ContainsAny(l.name, " \t\r\n=#\"'") || strings.ContainsAny(l.text, "\n\x00") || l.line <= last {
				t.Errorf("%q: %+v", b, l)
			}
			last = l.line
		}
		if most := strings.Count(string(b), "\n") + 1; last > most || len(faults) > 16 || len(lines) > most {
			t.Errorf("%q: %v, %q", b, lines, faults)
		}
	})
}
