package params

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every name that NCCL knows is known here, once, and says what comes of it.
func TestAllNamesAreKnown(t *testing.T) {
	b, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	n, documented := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		name, _, _ := strings.Cut(line, " ")
		if k := known(name); k == nil || k.Text == "" {
			t.Errorf("%s is not known", name)
		}
		if n++; strings.HasSuffix(line, " D") {
			documented++
		}
	}
	if n < 316 || documented < 112 {
		t.Errorf("the list has %d names, %d documented: it is cut", n, documented)
	}
	for _, k := range foreign() {
		if k.Effect == Acts {
			t.Errorf("%s acts and stands with those that do not", k.Name)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"NCCL_SOKET_IFNAME": "NCCL_SOCKET_IFNAME", "NCCL_BUFSIZE": "NCCL_BUFFSIZE", "NCCL_BUFFISZE": "NCCL_BUFFSIZE",
		"nccl_debug":  "NCCL_DEBUG",
		"NCCL_DEBUGG": "NCCL_DEBUG", "NCCL_MAX_CHANNELS": "NCCL_MAX_NCHANNELS", "NCCL_IB_HCAS": "NCCL_IB_HCA", "HCCL_TIMOUT": "HCCL_TIMEOUT",
		"HCCL_BUFFSIZE": "NCCL_BUFFSIZE", "NCCL_NOTHING_LIKE_IT_AT_ALL": "", "NCCL_": "",
		"NCCL_SOKET": "NCCL_SOCKET_IFNAME", "NCCL_SOCKET": "NCCL_SOCKET_IFNAME", "NCCL_SOKET_THREADS": "NCCL_SOCKET_NTHREADS",
		"NCCL_SOKET_FAMLY": "NCCL_SOCKET_FAMILY", "NCCL_TIMEOUT": "HCCL_TIMEOUT", "NCCL_NETT": "NCCL_NET", "NCCL_FOO": "", "HCCL_XY": "",
		"NCCL_BAR_BAZ": "", "HCCL_SHM": "HCCL_SHM_ARENA", "NCCL_QQQQQQ": "", "NCCL_X_Y_Z": "",
	} {
		if got := nearest(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"A", "", 1}, {"AB", "BA", 1}, {"ABC", "AXC", 1}, {"ABC", "ABCD", 1}, {"KITTEN", "SITTING", 3}, {"AAAAAAAAAA", "B", 9}} {
		if got := distance(c.a, c.b, 9); got != c.want || distance(c.b, c.a, 9) != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "f"),
		"NCCL_BUFFSIZE=4M\nNCCL_ALGO=ring\nNCCL_IB_HCA=x\nFOO=1\nHCCL_TIMOUT=3\nNCCL_DEBUG=\nx\n")
	faults := strings.Join(Check(file), "\n")
	for _, want := range []string{":1: NCCL_BUFFSIZE=4M: want a plain number of bytes: 4194304",
		"HCCL_TIMOUT (" + file + ":5)", ":7: this line"} {
		if !strings.Contains(faults, want) {
			t.Errorf("%q lacks %q", faults, want)
		}
	}
	if n := strings.Count(faults, "\n") + 1; n != 3 {
		t.Errorf("%d faults, want 3: %s", n, faults)
	}
}

func TestStamp(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for format, want := range map[string]string{
		"[%F %T] ": `^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] $`, "[%F_%T.%9f]_": `^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}\] $`, "": "^$",
		"%3f|%1f": `^\d{3}\|\d$`, "%%f%%": "^%f%$", "%": "^%?$", "%Z": "^UTC$", "text": "^text$",
		strings.Repeat("%F ", 200): "^$", strings.Repeat("%9f", 20): `^\d{180}$`,
	} {
		if got := stamp(format); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q gives %q, want %s", format, got, want)
		}
	}
}

func TestStampLevels(t *testing.T) {
	for _, c := range []struct {
		list string
		want string // levels of VWIT
	}{{"WARN", "W"}, {"", ""}, {"ALL", "VWIT"}, {"warn, INFO", "WI"}, {"^TRACE", "VWI"}, {"^ALL", ""}, {"TRACE,VERSION", "VT"}} {
		got := ""
		for _, level := range []string{"VERSION", "WARN", "INFO", "TRACE"} {
			if stampWanted(c.list, level) {
				got += level[:1]
			}
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.list, got, c.want)
		}
		if v := from(map[string]string{"NCCL_DEBUG_TIMESTAMP_LEVELS": c.list}); v.DebugStampLevels != c.list {
			t.Errorf("%q is not taken", c.list)
		}
	}
}
