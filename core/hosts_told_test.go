package core

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto/wire"
)

// Ranks of one host with different topology files are named, by what stands in these; hosts may differ from each other.
func TestFilesApart(t *testing.T) {
	a, b := [32]byte{1}, [32]byte{2}
	on := func(host, file string, described [32]byte) wire.Peer {
		return wire.Peer{BootID: host, Host: host, File: file, Described: described}
	}
	for _, c := range []struct {
		peers []wire.Peer
		says  string
	}{
		{[]wire.Peer{on("x", "/a", a), on("x", "/b", a), on("y", "/c", b), on("z", "", [32]byte{})}, ""},
		{[]wire.Peer{on("x", "", [32]byte{}), on("y", "", [32]byte{}), on("x", "/a", a), on("x", "/b", b), on("x", "/a", a)},
			`on x it is not set on rank 0, "/a" on ranks 2, 4, "/b" on rank 3; rings go by rank 2's; set it alike`},
		{[]wire.Peer{on("x", "/a", [32]byte{}), on("x", "/b", [32]byte{})}, `on x it is "/a" on rank 0, "/b" on rank 1; set it alike`},
	} {
		if got := filesApart(c.peers); got == "" != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
	said := logged(t, "WARN")
	testkit.Setenv(t, "NCCL_DEBUG", "WARN")
	peers := []wire.Peer{on("x", "/a", a), on("x", "/b", b)}
	for r := range peers {
		peers[r].Settings = shared(params.Load())
	}
	for r := range peers {
		agree(r, peers)
	}
	if text := said(); strings.Count(text, "NCCL_TOPO_FILE") != 1 {
		t.Errorf("not said once: %s", text)
	}
}

// Of the ranks on a host that go by one file the first that can warn tells its faults; to the others they count as told.
func TestOneRankTellsFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "topo.xml")
	if err := os.WriteFile(file, []byte(`<system version="1"><cpu numaid="0" arch="vax"/></system>`), 0o600); err != nil {
		t.Fatal(err)
	}
	said := logged(t, "WARN")
	testkit.Setenv(t, "NCCL_TOPO_FILE", file)
	testkit.Setenv(t, "NCCL_DEBUG", "WARN")
	v := params.Load()
	peers := make([]wire.Peer, 4)
	for r := range peers {
		peers[r] = wire.Peer{BootID: "x", File: file, Process: [16]byte{byte(r)}, Settings: shared(v)}
	}
	peers[0].BootID = "y"              // another host
	peers[1].Settings = nil            // no log
	for k, r := range []int{2, 2, 1} { // once, and by none of the others
		c := &Comm{n: 4, rank: r, peers: peers, settings: v}
		c.agreed.places = places(peers)
		if who := c.teller(); who != 2 {
			t.Errorf("rank %d leaves it to rank %d, want 2", r, who)
		}
		c.machine(false)
		if got := strings.Count(said(), `arch "vax"`); got != 1 {
			t.Errorf("after %d looks it is said %d times", k+1, got)
		}
	}
}

// What two ranks write, of whom there is one ring, has the type of the link between their GPUs.
func TestDumpOfTwoRanks(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "graph.xml")
	testkit.Setenv(t, "NCCL_TOPO_FILE", recorded+"amd-nvlink-pairs.xml")
	testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE", dump)
	newWorld(t, 2).destroy()
	if text, err := os.ReadFile(dump); err != nil || !strings.Contains(string(text), `typeintra="NVL"`) {
		t.Errorf("%v, %s", err, text)
	}
}
