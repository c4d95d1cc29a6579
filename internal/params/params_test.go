package params

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/log"
)

func from(m map[string]string) *Values {
	return read(func(name string) (found, bool) { s, ok := m[name]; return found{name: name, text: s}, ok })
}

func TestDefaults(t *testing.T) {
	v := from(nil)
	if v.BuffSize != 4<<20 || v.InitTimeout != 300*time.Second || v.PeerTimeout != time.Minute || v.Timeout != 0 || v.CommBlocking != -1 ||
		v.ShmArena != 512<<20 || v.ShmDisable || v.Deterministic || v.PortRange != (PortRange{}) {
		t.Errorf("%+v", v)
	}
	for _, s := range v.Settings() {
		if s.Source != Default || s.Value != s.Knob.Default || s.Bad != "" {
			t.Errorf("%s: %+v", s.Knob.Name, s)
		}
	}
}

func TestValues(t *testing.T) {
	v := from(map[string]string{"NCCL_BUFFSIZE": "0x100000", "HCCL_INIT_TIMEOUT": "1.5", "NCCL_SHM_DISABLE": " 1 ",
		"HCCL_PORT_RANGE": "42000-42031", "NCCL_MAX_CTAS": "4", "NCCL_MIN_NCHANNELS": "8", "NCCL_SOCKET_FAMILY": "AF_INET6", "NCCL_ALGO": ""})
	if v.BuffSize != 1<<20 || v.InitTimeout != 1500*time.Millisecond || !v.ShmDisable || v.PortRange != (PortRange{42000, 42031}) ||
		v.SocketFamily != "AF_INET6" {
		t.Errorf("%+v", v)
	}
	if v = from(map[string]string{"NCCL_PROXY_CPUSET": " 0-3,8"}); !v.ProxyCPUs.Equal(cpuset.Of(0, 1, 2, 3, 8)) || v.IgnoreAffinity {
		t.Errorf("processors %s", v.ProxyCPUs)
	}
	v = from(map[string]string{"NCCL_MAX_CTAS": "4", "NCCL_MIN_NCHANNELS": "8"})
	if least, most := v.Channels(); least != 4 || most != 4 {
		t.Errorf("channels %d to %d, want the least held to the most, 4", least, most)
	}
}

func TestBadValuesKeepTheDefault(t *testing.T) {
	for _, c := range []struct{ name, value, word string }{
		{"NCCL_BUFFSIZE", "-3", "4096"}, {"NCCL_BUFFSIZE", "4M", "4194304"}, {"NCCL_BUFFSIZE", "9223372036854775808", "whole"},
		{"NCCL_MAX_NCHANNELS", "abc", "64"}, {"NCCL_MAX_NCHANNELS", "1_0", "64"}, {"NCCL_MAX_NCHANNELS", "0b11", "64"},
		{"NCCL_DEBUG", "inof", "INFO"}, {"NCCL_SHM_DISABLE", "yes", "0 to 1"},
		{"NCCL_SOCKET_FAMILY", "AF_UNIX", "AF_INET6"}, {"HCCL_INIT_TIMEOUT", "NaN", "seconds"}, {"HCCL_INIT_TIMEOUT", "0", "0.001"},
		{"HCCL_TIMEOUT", "1e300", "1e+09"}, {"HCCL_PORT_RANGE", "9-1", "42000"}, {"HCCL_PORT_RANGE", "0-1", "65535"},
		{"NCCL_PROXY_CPUSET", "3-1", "0-3"}, {"NCCL_PROXY_CPUSET", "0x3", "0-3"}, {"NCCL_TOPO_DUMP_FILE_RANK", "-1", "whole"},
		{"HCCL_TOPO_SCOPE", "hosts", "local"},
		{"NCCL_DEBUG_SUBSYS", "NETT", "NET"}, {"NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN,INF", "INFO"},
	} {
		v, found := from(map[string]string{c.name: c.value}), false
		for _, s := range v.Settings() {
			if s.Knob.Name == c.name {
				found = s.Bad == c.value && strings.Contains(s.Why, c.word) && s.Value == cmp.Or(s.Knob.instead, s.Knob.Default) && s.Source == Default
			}
		}
		if !found {
			t.Errorf("%s=%s: not refused with the word %q", c.name, c.value, c.word)
		}
	}
}

// Load reads C's environment, which os.Setenv changes in a program with cgo, and says once what it refuses.
func TestLoadReportsOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	t.Setenv("NCCL_DEBUG", "INFO")
	t.Setenv("NCCL_DEBUG_FILE", file)
	t.Setenv("NCCL_MIN_NCHANNELS", "many")
	t.Cleanup(func() { log.Configure(log.LevelNone, 0, "") })
	Load()
	t.Setenv("NCCL_BUFFSIZE", "8192")
	if v := Load(); v.BuffSize != 8192 || Current() != v {
		t.Errorf("a value set after the first load is not seen: %d", v.BuffSize)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{"NCCL version 2.32.3": 1, "NCCL_MIN_NCHANNELS=many (environment) is not used": 1,
		"settings: NCCL_DEBUG=INFO (environment), ": 2, "NCCL_BUFFSIZE=8192 (environment)": 1} {
		if got := strings.Count(string(b), line); got != want {
			t.Errorf("%q is said %d times, want %d, in\n%s", line, got, want, b)
		}
	}
}

// A level that is none is reported like other bad values, although the default of NCCL_DEBUG is silence.
func TestBadLevelIsHeard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	t.Setenv("NCCL_DEBUG", "LOUD")
	t.Setenv("NCCL_DEBUG_FILE", file)
	t.Cleanup(func() { log.Configure(log.LevelNone, 0, "") })
	for range 2 {
		if v := Load(); v.Debug != "WARN" {
			t.Errorf("NCCL_DEBUG=LOUD counts as %q", v.Debug)
		}
	}
	b, err := os.ReadFile(file)
	if got := strings.Count(string(b), "NCCL_DEBUG=LOUD (environment) is not used: want one of NONE, VERSION, WARN"); err != nil || got != 1 {
		t.Errorf("said %d times, want once (%v):\n%s", got, err, b)
	}
}

func TestCacheFolder(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x"}, {"", "/h", "/h/.cache"}, {"relative", "/h", "/h/.cache"}, {"", "", ""},
	} {
		t.Setenv("XDG_CACHE_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		if got := CacheFolder(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Knobs() {
		if seen[k.Name] || k.Text == "" || k.Range == "" || !strings.HasPrefix(k.Name, "NCCL_") && !strings.HasPrefix(k.Name, "HCCL_") {
			t.Errorf("%q: stands twice, or lacks a text, or is not ours", k.Name)
		}
		seen[k.Name] = true
	}
}

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for path, want := range map[string]string{HeaderPath: Header(), ManualPath: Manual()} {
		b, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil || string(b) != want {
			t.Errorf("%s is old (%v): run go generate ./internal/params", path, err)
		}
	}
}

// Whatever the environment holds, reading it ends with values in their ranges.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "1", "-1", "0x10", "4M", "1-2", "1e9", "^NET", "AF_INET", "9999999999999999999", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := read(func(name string) (found, bool) { return found{name: name, text: s}, true })
		if v.BuffSize < 1<<12 || v.BuffSize > 1<<30 || v.InitTimeout <= 0 || v.Timeout < 0 || v.PortRange.First > v.PortRange.Last {
			t.Errorf("%q: %+v", s, v)
		}
		if least, most := v.Channels(); least < 0 || most > maxChannels || most != 0 && least > most {
			t.Errorf("%q: channels %d to %d", s, least, most)
		}
	})
}
