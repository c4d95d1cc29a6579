package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit/netns"
)

// Topology files as users have them, on hosts that are not as the files say. Ranks are of the program's sweep: all operations in
// growing sizes, results checked.

// sweep runs ranks and returns what each has said. Words name hosts, see apart; without them there is one.
func sweep(t *testing.T, env []string, ranks int, words ...string) (said []string) {
	t.Helper()
	said = heard(t, "INFO", env, append([]string{"sweep", fmt.Sprint(ranks)}, words...)...)
	if len(said) != ranks {
		t.Fatalf("%d of %d ranks have said anything", len(said), ranks)
	}
	return said
}

// heard runs case_topology and returns what each process of it has said at a level.
func heard(t *testing.T, level string, env []string, args ...string) (said []string) {
	t.Helper()
	return listen(t, append([]string{"NCCL_DEBUG=" + level, "NCCL_DEBUG_SUBSYS=ALL"}, env...),
		append([]string{build(t, "case_topology")}, args...)...)
}

// listen runs a command and returns what each process has said.
func listen(t *testing.T, env []string, argv ...string) (said []string) {
	t.Helper()
	folder := t.TempDir()
	run(t, append([]string{"NCCL_DEBUG_FILE=" + folder + "/%p"}, env...), argv...)
	names, err := filepath.Glob(folder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		said = append(said, text(t, name))
	}
	return said
}

// apart are words for sweep: hosts that are joined by rails, with a topology file each.
func apart(t *testing.T, rails int, files ...string) (words []string) {
	t.Helper()
	needsRoot(t)
	lab := netns.New(t, len(files))
	for range rails {
		lab.Rail()
	}
	return hostWords(lab, files...)
}

func hostWords(lab *netns.Lab, files ...string) (words []string) {
	for h, f := range files {
		words = append(words, lab.Host(h), f)
	}
	return words
}

var chosen = regexp.MustCompile(`: (\S+ of \d+ elements of \S+ uses \S+ on \d+ channels?, in slices of \d+ KiB)`)

// plans is what a rank says of algorithms and channels, in its order.
func plans(said string) (all []string) {
	for _, m := range chosen.FindAllStringSubmatch(said, -1) {
		all = append(all, m[1])
	}
	return all
}

// alike wants the same plans of all ranks.
func alike(t *testing.T, said []string) []string {
	t.Helper()
	first := plans(said[0])
	if len(first) == 0 {
		t.Errorf("no plan is told in\n%s", said[0])
	}
	for _, s := range said[1:] {
		samePlans(t, plans(s), first)
	}
	return first
}

// warned wants so many lines of warning from each rank.
func warned(t *testing.T, said []string, want int) {
	t.Helper()
	for _, s := range said {
		var lines []string
		for line := range strings.Lines(s) {
			if strings.Contains(line, " WARN ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		if len(lines) != want {
			t.Errorf("%d warnings, want %d:\n%s", len(lines), want, strings.Join(lines, "\n"))
		}
	}
}

func samePlans(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("ranks plan\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// each wants a text so many times from each rank.
func each(t *testing.T, said []string, text string, want int) {
	t.Helper()
	for _, s := range said {
		if got := strings.Count(s, text); got != want {
			t.Errorf("%q is said %d times, want %d, in\n%s", text, got, want, s)
		}
	}
}

// A flat file is said to be flat; what is done is the same as with a right file and with none.
func TestFlatTopology(t *testing.T) {
	const says = "the PCI tree is flat"
	bad, good := file(t, flat()), file(t, levels())
	for _, p := range both {
		t.Run("C96 one host over "+p.name, func(t *testing.T) {
			none := alike(t, sweep(t, p.env, 4))
			for name, want := range map[string]int{bad: 1, good: 0} {
				said := sweep(t, append([]string{"NCCL_TOPO_FILE=" + name}, p.env...), 4)
				each(t, said, says, want)
				each(t, said, "topology: this machine, by "+name, 1)
				samePlans(t, alike(t, said), none)
			}
		})
	}
	t.Run("C96 two hosts, two rails", func(t *testing.T) {
		none := alike(t, sweep(t, nil, 4, apart(t, 2, "-", "-")...))
		said := sweep(t, nil, 4, apart(t, 2, bad, bad)...)
		each(t, said, says, 1)
		samePlans(t, alike(t, said), none)
	})
}

// Hosts that look different to their ranks: all ranks plan alike.
func TestHostsLookDifferent(t *testing.T) {
	intel := system(processor(0, "GenuineIntel", card(16, "e0", 0, 100000)), processor(1, "GenuineIntel", ""))
	amd := system(processor(0, "AuthenticAMD", ""), processor(1, "AuthenticAMD", card(17, "e0", 0, 10000)), processor(2, "AuthenticAMD", ""),
		processor(3, "AuthenticAMD", ""))
	t.Run("C99 two NUMA nodes and four", func(t *testing.T) {
		said := sweep(t, nil, 4, apart(t, 1, file(t, intel), file(t, amd))...)
		alike(t, said)
		each(t, []string{strings.Join(said, "")}, "the hosts' topologies differ", 1)
		warned(t, said, 0)
	})
}

// A file that names devices of another machine: those that are here are used, and what is written serves again.
func TestDevicesThatAreNotHere(t *testing.T) {
	t.Run("C98 ports of another machine", func(t *testing.T) {
		needsRoot(t)
		lab := netns.New(t, 2)
		lab.Rail()
		lab.Rail()
		all := file(t, system(processor(0, "GenuineIntel", gpu(1, 0)+card(16, "e0", 0, 100000)+card(17, "e1", 1, 100000)+
			card(18, "e9", 2, 100000)+card(19, "mlx5_7", 3, 100000))))
		topo, graph := filepath.Join(t.TempDir(), "topo.xml"), filepath.Join(t.TempDir(), "graph.xml")
		dumps := []string{"NCCL_TOPO_DUMP_FILE=" + topo, "NCCL_TOPO_DUMP_FILE_RANK=1", "NCCL_GRAPH_DUMP_FILE=" + graph,
			"NCCL_GRAPH_DUMP_FILE_RANK=2"}
		said := sweep(t, dumps, 4, hostWords(lab, all, all)...)
		each(t, said, "2 ports (e9, mlx5_7) of the topology file; rings are laid as the file says", 1)
		warned(t, said, 0)
		railsAreUsed(t, lab, said)

		wrote := text(t, topo) + text(t, graph)
		again := sweep(t, append([]string{"NCCL_TOPO_FILE=" + topo, "NCCL_GRAPH_FILE=" + graph}, dumps...), 4, hostWords(lab, "-", "-")...)
		warned(t, again, 0)
		samePlans(t, alike(t, again), alike(t, said))
		if got := text(t, topo) + text(t, graph); got != wrote {
			t.Errorf("what was written is not written again:\n%s\nnot\n%s", got, wrote)
		}
	})
	t.Run("C98 dumps that cannot be written", func(t *testing.T) {
		said := sweep(t, []string{"NCCL_TOPO_DUMP_FILE=/nowhere/a", "NCCL_GRAPH_DUMP_FILE=/nowhere/b"}, 2)
		all := []string{strings.Join(said, "")}
		each(t, all, "NCCL_TOPO_DUMP_FILE cannot be written: /nowhere/a: no such file", 1)
		each(t, all, "NCCL_GRAPH_DUMP_FILE cannot be written: /nowhere/b: no such file", 1)
	})
}

var bothRails = regexp.MustCompile(`interfaces to other hosts: e0 \(\S+\), e1 \(\S+\); not used: lo`)

// railsAreUsed wants both of two rails to be found by all ranks, and to carry more than a greeting: each slice goes by the rail that is
// faster then, so that shares differ.
func railsAreUsed(t *testing.T, lab *netns.Lab, said []string) {
	t.Helper()
	for _, s := range said {
		if !bothRails.MatchString(s) {
			t.Errorf("not both rails are found in\n%s", s)
		}
	}
	for rail := range 2 {
		if n := lab.Sent(0, netns.Device(rail)) + lab.Sent(1, netns.Device(rail)); n < 64<<10 {
			t.Errorf("%d bytes were sent by rail %d: it is not used", n, rail)
		}
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
