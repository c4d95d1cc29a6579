package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Settings as users write them. What is said of them goes to a file of each process.

// A mistyped name and a bad value are told, each once; a legal name that does nothing here is told at INFO only, with all that is set.
func TestMistypedSettings(t *testing.T) {
	for _, c := range []struct{ name, env, says string }{
		{"unknown names", "NCCL_SOKET_IFNAME=eth0", "NCCL_SOKET_IFNAME (environment) is no setting and has no effect: did you mean " +
			"NCCL_SOCKET_IFNAME?"},
		{"unknown names", "NCCL_BUFSIZE=1", "NCCL_BUFSIZE (environment) is no setting and has no effect: did you mean NCCL_BUFFSIZE?"},
		{"algorithm", "NCCL_ALGO=Rign", "NCCL_ALGO=Rign (environment) is not used: \"rign\" is no algorithm"},
		{"level", "NCCL_DEBUG=inof", "NCCL_DEBUG=inof (environment) is not used: want one of "},
		{"channels", "NCCL_MAX_NCHANNELS=abc", "NCCL_MAX_NCHANNELS=abc (environment) is not used: "},
		{"negative", "NCCL_BUFFSIZE=-3", "NCCL_BUFFSIZE=-3 (environment) is not used: "},
		{"unit", "NCCL_BUFFSIZE=4M", "NCCL_BUFFSIZE=4M (environment) is not used: want a plain number of bytes: 4194304"},
	} {
		t.Run("C77 "+c.name+", "+c.env, func(t *testing.T) {
			said := heard(t, "WARN", []string{c.env}, "sweep", "2")
			each(t, said, "HCCL WARN "+c.says, 1)
			warned(t, said, 1)
		})
	}
	for _, p := range both {
		t.Run("C77 legal, without effect here, over "+p.name, func(t *testing.T) {
			said := sweep(t, append([]string{"NCCL_IB_HCA=mlx5_0", "NCCL_BUFFSIZE=65536"}, p.env...), 2)
			warned(t, said, 0)
			each(t, said, "NCCL_IB_HCA (environment)", 1)
			each(t, said, "NCCL_BUFFSIZE=65536 (environment)", 1)
		})
	}
}

// C78: the environment goes before the user's file or the one that is named, and these before the system's.
func TestSettingsFiles(t *testing.T) {
	const system = "# of this host\r\n\r\nNCCL_DEBUG = INFO\r\nNCCL_SOCKET_IFNAME= lo \r\nnoise\nNCCL_BUFFSIZE=\"65536\" # why\n" +
		"NCCL_MIN_NCHANNELS=2\n"
	const fromSystem = "NCCL_BUFFSIZE=65536 (/etc/nccl.conf:6)"
	etc, home, bad := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(bad, ".nccl.conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	mine, named := filepath.Join(home, ".nccl.conf"), filepath.Join(home, "named")
	for name, text := range map[string]string{
		filepath.Join(etc, "nccl.conf"): system,
		filepath.Join(etc, "passwd"):    fmt.Sprintf("root:x:%d:0::%s:/bin/sh\n", os.Geteuid(), home),
		mine:                            "NCCL_BUFFSIZE=131072\nNCCL_MIN_NCHANNELS=3\n",
		named:                           "\nNCCL_BUFFSIZE=262144\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		lines    string // of shell
		warnings int
		says     []string
	}{
		"all three":       {"export HOME=" + home, 1, []string{"NCCL_BUFFSIZE=131072 (" + mine + ":1)"}},
		"HOME unset":      {"unset HOME", 1, []string{"NCCL_BUFFSIZE=131072 (" + mine + ":1)"}},
		"no user file":    {"export HOME=/nowhere", 1, []string{fromSystem}},
		"a file is named": {"export HOME=" + home + " NCCL_CONF_FILE=" + named, 1, []string{"NCCL_BUFFSIZE=262144 (" + named + ":2)"}},
		"it is not there": {"export NCCL_CONF_FILE=/nowhere/conf", 2,
			[]string{"WARN /nowhere/conf cannot be read for settings: No such file", fromSystem}},
		"it is no file": {"export NCCL_CONF_FILE=" + home, 2,
			[]string{"WARN " + home + " cannot be read for settings: it is no file", fromSystem}},
		"the user's cannot be read": {"export HOME=" + bad, 2,
			[]string{"WARN " + bad + "/.nccl.conf cannot be read for settings: it is no file", fromSystem}},
	} {
		t.Run("C78 "+name, func(t *testing.T) {
			needsRoot(t)
			lines := "mount --bind " + etc + " /etc; unset NCCL_DEBUG NCCL_CONF_FILE NCCL_BUFFSIZE NCCL_SOCKET_IFNAME\n" + c.lines + "\nexec \"$@\""
			said := listen(t, append(tcp.env, "NCCL_MIN_NCHANNELS=1"), "unshare", "-m", "sh", "-ec", lines, "sh", build(t, "case_topology"),
				"sweep", "2")
			for _, says := range append(c.says, "WARN /etc/nccl.conf:5: this line is not used: there is no =", "NCCL_DEBUG=INFO (/etc/nccl.conf:3)",
				"NCCL_SOCKET_IFNAME=lo (/etc/nccl.conf:4)", "NCCL_MIN_NCHANNELS=1 (environment)") {
				each(t, said, says, 1)
			}
			warned(t, said, c.warnings)
		})
	}
}

// An algorithm that cannot do an operation is told once, when the communicator is made, and another does it.
func TestForcedAlgorithms(t *testing.T) {
	for k, c := range []struct {
		env    string
		unfit  string // operations that the algorithms asked for cannot do, none: ""
		others string // said instead
	}{
		{"NCCL_ALGO=Tree", "reduce, broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=NVLS", "all-reduce, reduce, broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=CollnetDirect", "all-reduce, reduce, broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=allreduce:tree;broadcast:ring", "", ""},
		{"NCCL_ALGO=allreduce:nvls;broadcast:tree", "all-reduce, broadcast", ""},
		{"NCCL_ALGO=twoshot", "broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=alltoall:ring", "all-to-all", ""},
		{"NCCL_ALGO=Ring", "", ""},
		{"NCCL_ALGO=Tree,Ring", "", ""},
		{"NCCL_ALGO=^Tree", "", ""},
		{"NCCL_ALGO=^Ring", "", ""},
		{"NCCL_ALGO=^Ring,direct,Tree,Star", "", "NCCL_ALGO=^Ring,direct,Tree,Star (environment) is not used"},
		{"NCCL_PROTO=LL128", "", ""},
		{"NCCL_PROTO=^Simple", "", ""},
	} {
		p := both[k%2] // in turn: a choice does not depend on the path
		t.Run("C101 "+c.env+" over "+p.name, func(t *testing.T) {
			said := strings.Join(heard(t, "WARN", append([]string{c.env}, p.env...), "few"), "")
			_, value, _ := strings.Cut(c.env, "=")
			want, says := 0, c.others
			switch {
			case c.unfit != "":
				want, says = 4, "NCCL_ALGO="+value+" of rank 0 cannot do "+c.unfit+": " // a rank that is alone takes none
			case c.others != "":
				want = 1 + 2 + 3 + 4 + 5 // each process reads its own
			}
			if got := strings.Count(said, "HCCL WARN"); got != want || strings.Count(said, says) < want {
				t.Errorf("%d warnings by jobs of 1 to 5 ranks, want %d that say %q:\n%s", got, want, says, said)
			}
		})
	}
}
