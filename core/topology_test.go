package core

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/cost/store"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto/wire"
)

func graphFile(t *testing.T, rings ...string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `<graphs version="1"><graph id="0" pattern="4" nchannels="%d" typeintra="SYS" typeinter="LOC">`, len(rings))
	for _, ring := range rings {
		b.WriteString("\n<channel>")
		for dev := range strings.FieldsSeq(ring) {
			fmt.Fprintf(&b, `<gpu dev="%s"/>`, dev)
		}
		b.WriteString("</channel>")
	}
	file := filepath.Join(t.TempDir(), "graph.xml")
	if err := os.WriteFile(file, []byte(b.String()+"</graph></graphs>"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// sums makes four ranks, has them sum by rings, and returns the orders of these.
func sums(t *testing.T) (orders [][]int) {
	t.Helper()
	w := newWorld(t, 4)
	o := shape{fn: coll.AllReduce, typ: coll.Float32, red: coll.Sum, n: 4, count: 50000, seed: 3}
	parts := make([]*part, 4)
	w.must(w.each(func(r int) error {
		parts[r] = o.part(r)
		return do(w.comms[r], &parts[r].call)
	}))
	for r := range parts {
		if err := parts[r].check(); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	orders = w.comms[2].agreed.found.Orders
	w.destroy()
	return orders
}

// NCCL_GRAPH_FILE orders the ranks of a host around rings, a channel for each, and what NCCL_GRAPH_DUMP_FILE writes does the same again.
func TestGraphFileActs(t *testing.T) {
	overEach(t, func(t *testing.T) {
		said := logged(t, "INFO")
		testkit.Setenv(t, "NCCL_ALGO", "ring")
		dump := filepath.Join(t.TempDir(), "dump.xml")
		testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE", dump)
		testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE_RANK", "1")
		testkit.Setenv(t, "NCCL_GRAPH_FILE", graphFile(t, "0 2 1 3", "3 1 0 2"))
		want := [][]int{{0, 2, 1, 3}, {3, 1, 0, 2}}
		if os.Getenv(mixedVariable) != "" { // two hosts of two ranks, which a file of four serves as well
			want = [][]int{{0, 2, 1, 3}, {2, 0, 3, 1}}
			testkit.Setenv(t, "NCCL_GRAPH_FILE", graphFile(t, "0 1", "3 1 0 2"))
		}
		if got := sums(t); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%v, want %v", got, want)
		}
		for _, says := range []string{"by NCCL_GRAPH_FILE of rank 0", "rank 1 has written its host's rings to " + dump, "ring on 2 channels"} {
			if !strings.Contains(said(), says) {
				t.Errorf("%q is not said in\n%s", says, said())
			}
		}
		testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE", "")
		testkit.Setenv(t, "NCCL_GRAPH_FILE", dump)
		if got := sums(t); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%v by the file that was written, want %v", got, want)
		}
	})
}

// A graph file with faults is told with its line, and the communicator is made.
func TestBadGraphFiles(t *testing.T) {
	folder := t.TempDir()
	cut := filepath.Join(folder, "cut.xml")
	if err := os.WriteFile(cut, []byte("<graphs version=\"1\">\n<graph"), 0o644); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(folder, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(folder, "long.xml")
	if err := errors.Join(os.WriteFile(long, nil, 0o600), os.Truncate(long, 1<<40)); err != nil { // a hole: more than memory holds
		t.Fatal(err)
	}
	for file, says := range map[string]string{
		cut:                              "cut.xml: it is not used: line 2",
		pipe:                             "it is no regular file",
		long:                             "long.xml: it is not used: the file is longer than 64 MiB",
		folder:                           "it is no regular file",
		filepath.Join(folder, "missing"): "missing: it is not used: no such file",
		graphFile(t):                     "it has no rings",
		graphFile(t, "0 1 2 3", "0 1 1"): "line 3: a channel passes GPU 1 twice",
		graphFile(t, "0 1"):              "line 2: the channel is not used: it passes 2 of the 4 ranks",
	} {
		said := logged(t, "WARN")
		testkit.Setenv(t, "NCCL_GRAPH_FILE", file)
		testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE", filepath.Join(folder, "no", "such", "folder"))
		if got := sums(t); len(got) != 1 || !slices.IsSorted(got[0]) {
			t.Errorf("%s: %v", file, got)
		}
		if text := said(); strings.Count(text, says) != 1 {
			t.Errorf("%q is not said once in\n%s", says, text)
		}
	}
}

// A fault in a topology file is told with the file and the line, and quotes no more of the text than a person reads.
func TestFaultsNameTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "topo.xml")
	text := "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"" + strings.Repeat("z", 4000) + "\"/></system>"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := logged(t, "WARN")
	testkit.Setenv(t, "NCCL_TOPO_FILE", file)
	sums(t)
	if got := said(); strings.Count(got, "topology: "+file+": line 2: NUMA node 0 has arch \"zzz") != 1 || len(got) > 1000 {
		t.Errorf("%d bytes are said: %.2000s", len(got), got)
	}
}

// A rank tells what is measured from its place to others, if the measures are of this topology, and else only looks at nothing.
func TestMeasuresAreTold(t *testing.T) {
	log.Configure(log.LevelNone, 0, "")
	file := filepath.Join(t.TempDir(), "costs.json")
	hash := hostTopology("")
	describe := func() *wire.Peer {
		p := &wire.Peer{NUMA: 0, Cache: 4}
		(&Comm{settings: params.Load()}).describeTopology(p)
		return p
	}
	testkit.Setenv(t, "HCCL_COST_FILE", "")
	testkit.Setenv(t, "XDG_CACHE_HOME", t.TempDir())
	if p := describe(); p.Topology != "" || p.Rates != nil {
		t.Errorf("without measures the topology is looked at: %+v", p)
	}
	m := cost.NewMeasures(hash)
	for _, to := range []string{"numa0/cache4", "numa1/cache8", "numa0/cache0"} {
		if err := m.Set("numa0/cache4", to, cost.Measured{Rate: 5e9}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (store.Where{File: file}).Write(m); err != nil {
		t.Fatal(err)
	}
	testkit.Setenv(t, "HCCL_COST_FILE", file)
	want := []wire.Rate{{To: "numa0/cache0", Rate: 5e9}, {To: "numa1/cache8", Rate: 5e9}}
	if p := describe(); p.Topology != hash || !slices.Equal(p.Rates, want) {
		t.Errorf("%+v", p)
	}
	testkit.Setenv(t, "HCCL_TOPO_SCOPE", "none")
	if p := describe(); p.Rates != nil {
		t.Errorf("%+v", p)
	}
	testkit.Setenv(t, "HCCL_TOPO_SCOPE", "all")
	m.Topology = "another"
	if _, err := (store.Where{File: file}).Write(m); err != nil {
		t.Fatal(err)
	}
	said := logged(t, "WARN")
	if p := describe(); p.Rates != nil || !strings.Contains(said(), file+" is not used: the kept measures are of topology \"another\"") {
		t.Errorf("%+v, said %s", p, said())
	}
}

// Measures that the ranks have told decide the order; with HCCL_TOPO_SCOPE=none nothing does, and hosts do not count.
func TestArrangeByMeasures(t *testing.T) {
	var peers []wire.Peer
	for numa := range int32(4) {
		p := wire.Peer{BootID: "x", NUMA: numa}
		for to := range int32(4) {
			rate := 1e9
			if d := (to - numa + 4) % 4; d == 2 { // opposite ones are near
				rate = 9e9
			}
			p.Rates = append(p.Rates, wire.Rate{To: cost.Rank{NUMA: int(to)}.Place(), Rate: rate})
		}
		peers = append(peers, p)
	}
	var a agreement
	if err := a.use(a.arrange(peers).Near()); err != nil || !slices.Equal(a.found.Orders[0], []int{0, 2, 1, 3}) || a.order == nil {
		t.Errorf("%v, %+v", err, a.found)
	}
	peers[3].BootID = "y"
	a = agreement{scope: cost.Nothing}
	err := a.use(a.arrange(peers).Near())
	if err != nil || a.order != nil || a.setting.Hosts != 1 || !strings.Contains(a.around(), "by nothing") {
		t.Errorf("%v, %+v", err, a)
	}
}

// Hosts whose topologies differ are named, each once.
func TestHostsThatDiffer(t *testing.T) {
	said := logged(t, "INFO")
	params.Load()
	peers := []wire.Peer{{BootID: "x", Host: "one", Topology: "aa"}, {BootID: "x", Host: "one", Topology: "aa"},
		{BootID: "y", Host: "two", Topology: "aa"}}
	tellHosts(log.Rank(0), peers)
	if strings.Contains(said(), "differ") {
		t.Error("equal hosts differ")
	}
	tellHosts(log.Rank(0), append(peers, wire.Peer{BootID: "z", Host: "three", Topology: "bb"}, wire.Peer{BootID: "w"}))
	if want := "topologies differ: aa on one (rank 0), two (rank 2), bb on three (rank 3);"; !strings.Contains(said(), want) {
		t.Errorf("%q is not said in\n%s", want, said())
	}
}

// HCCL_FABRIC_FILE tells on which switch a host hangs, and rings pass hosts of one switch together; a file that does not know it is told.
func TestFabricFile(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fabric.json")
	text := fmt.Sprintf(`{"hosts": [%q], "switches": [{"name": "leaf7", "group": 2}], "links": [{"a": %[1]q, "b": "leaf7", "gbps": 25}]}`,
		host)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	describe := func() *wire.Peer {
		p := &wire.Peer{}
		(&Comm{settings: params.Load()}).describeTopology(p)
		return p
	}
	testkit.Setenv(t, "HCCL_FABRIC_FILE", file)
	mine := describe()
	if mine.Switch != "leaf7" || mine.Pod != 2 {
		t.Errorf("this host hangs on %q in pod %d", mine.Switch, mine.Pod)
	}
	peers := []wire.Peer{*mine, {Switch: "leaf8", Pod: 2}, *mine}
	for r := range peers {
		peers[r].BootID = fmt.Sprint(r)
	}
	var a agreement
	if err := a.use(a.arrange(peers).Near()); err != nil || !slices.Equal(a.found.Orders[0], []int{0, 2, 1}) ||
		!strings.Contains(a.around(), "hosts by their network switches") {
		t.Errorf("%v, %s", err, a.around())
	}
	said := logged(t, "WARN")
	for name, says := range map[string]string{file + "x": "no such file", filepath.Dir(file): "no regular file"} {
		testkit.Setenv(t, "HCCL_FABRIC_FILE", name)
		if p := describe(); p.Switch != "" || strings.Count(said(), name+": this host is taken as on no switch: ") != 1 ||
			!strings.Contains(said(), says) {
			t.Errorf("%s: on %q, said %s", name, p.Switch, said())
		}
	}
}
