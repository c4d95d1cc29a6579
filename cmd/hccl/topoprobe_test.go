package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/cost/store"
)

// In a tournament each two ranks meet once, in as few rounds as can be, and none has two partners in one.
func TestTournament(t *testing.T) {
	for n := 2; n <= 33; n++ {
		rounds := tournament(n)
		if want := n - 1 + n%2; len(rounds) != want {
			t.Fatalf("%d ranks: %d rounds, want %d", n, len(rounds), want)
		}
		met := map[[2]int]int{}
		for _, peers := range rounds {
			for a, b := range peers {
				if b >= 0 && (peers[b] != a || a == b) {
					t.Fatalf("%d ranks: %v", n, peers)
				}
				met[[2]int{a, b}]++
			}
		}
		for a := range n {
			for b := range n {
				if a != b && met[[2]int{a, b}] != 1 {
					t.Fatalf("%d ranks: %d and %d meet %d times", n, a, b, met[[2]int{a, b}])
				}
			}
		}
	}
}

func kept(t *testing.T) (folder string, files func() []string) {
	t.Helper()
	folder = t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	t.Setenv("HCCL_COST_FILE", "")
	return folder, func() []string {
		all, err := filepath.Glob(folder + "/hccl/costs/*")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// A probe of two ranks is kept, and the matrix of this machine tells what it found, with its source; another probe replaces it.
func TestProbeIsKept(t *testing.T) {
	if processors() < 2 {
		t.Skip("two ranks on one processor are not kept")
	}
	lib := library(t)
	_, files := kept(t)
	if out, text, status := hccl(t, "topo", "matrix"); status != 0 || strings.Contains(out, "m\t") || text != "" {
		t.Errorf("before: status %d, %s%s", status, out, text)
	}
	for range 2 {
		out, text, status := hccl(t, "topo", "probe", "--lib", lib, "--ranks", "2", "--seconds", "0.1", "-b", "64K")
		if status != 0 || len(files()) != 1 || !strings.Contains(out, "kept in "+files()[0]) || strings.Count(out, "host0/numa") != 4 {
			t.Fatalf("status %d, %v\n%s%s", status, files(), out, text)
		}
	}
	out, text, status := hccl(t, "topo", "matrix", "--json", "--ranks", "2")
	var got costs
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || len(got.Cost) != 2 {
		t.Fatalf("%v, status %d, %s%s", err, status, out, text)
	}
	if got.Source[0][1] != cost.Measure || !(got.Bandwidth[1][0] > 0) || !(got.Latency[0][1] > 0) || got.Cost[0][0] != 0 ||
		math.Abs(got.Cost[0][1]*got.Bandwidth[0][1]/cost.Unit-1) > 1e-9 {
		t.Errorf("%s", out)
	}
	none, _, _ := hccl(t, "topo", "matrix", "--scope", "none", "--json")
	t.Setenv("HCCL_TOPO_SCOPE", "none")
	again, _, _ := hccl(t, "topo", "matrix", "--json")
	if none != again || strings.Contains(none, "measure") {
		t.Errorf("%s%s", none, again)
	}
}

// Files that cannot be used are told and change nothing; a probe writes them anew.
func TestDamagedCostsAreTold(t *testing.T) {
	lib := library(t)
	folder, _ := kept(t)
	file := filepath.Join(folder, "costs.json")
	t.Setenv("HCCL_COST_FILE", file)
	for _, bad := range []string{"{", `{"version": 2, "topology": "of another machine"}`} {
		if err := os.WriteFile(file, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		out, text, status := hccl(t, "topo", "matrix", "--ranks", "2")
		if status != 0 || !strings.Contains(text, file+" is not used") || !strings.Contains(out, "1w") {
			t.Errorf("status %d, %s%s", status, out, text)
		}
		if processors() < 2 {
			continue
		}
		if _, text, status = hccl(t, "topo", "probe", "--lib", lib, "--seconds", "0.1", "-b", "4K", "--ranks", "2"); status != 0 ||
			!strings.Contains(text, "written anew") {
			t.Errorf("status %d, %s", status, text)
		}
		if _, text, _ = hccl(t, "topo", "matrix"); text != "" {
			t.Errorf("after a probe: %s", text)
		}
	}
}

// More ranks than processors are told and not kept; as threads and as JSON all the same.
func TestCrowdedProbe(t *testing.T) {
	lib := library(t)
	_, files := kept(t)
	n := processors() + 1
	if n < 3 || n > 17 {
		t.Skip("so many ranks are too few, or take too long")
	}
	for _, how := range []string{"--threads", "--threads=false"} {
		out, text, status := hccl(t, "topo", "probe", "--lib", lib, "--ranks", strconv.Itoa(n), "--seconds", "0.1", "-b", "4K", how)
		if status != 0 || len(files()) != 0 || !strings.Contains(out, "not kept: ") || strings.Count(out, "\n") != n*(n-1)+3 {
			t.Errorf("status %d, %v\n%s%s", status, files(), out, text)
		}
		out, text, status = hccl(t, "topo", "probe", "--lib", lib, "--ranks", strconv.Itoa(n), "--seconds", "0.1", "-b", "4K", how, "-J")
		var got costs
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || len(got.Ranks) != n || got.Hosts != 1 {
			t.Fatalf("%v, status %d, %s%s", err, status, out, text)
		}
		for a, row := range got.Source {
			if slices.Contains(row[:a], cost.Weight) || slices.Contains(row[a+1:], cost.Weight) {
				t.Errorf("rank %d: %v", a, row)
			}
		}
	}
	if _, text, status := hccl(t, "topo", "probe", "--lib", lib, "--ranks", "2", "-b", "0"); status != 1 ||
		!strings.Contains(text, "4096 or more") {
		t.Errorf("messages of nothing: status %d, %s", status, text)
	}
	if _, text, status := hccl(t, "topo", "probe", "--lib", lib, "--ranks", "1"); status != 1 || !strings.Contains(text, "needs two") {
		t.Errorf("status %d, %s", status, text)
	}
}

func TestSeats(t *testing.T) {
	own := allowed()
	for _, n := range []int{0, 1, 7} {
		all := seats(n)
		if n > 0 && len(all) != n || len(all) == 0 {
			t.Errorf("%d seats for %d ranks", len(all), n)
		}
		for _, s := range all {
			if s.processor >= 0 && !slices.Contains(own.All(), s.processor) {
				t.Errorf("%+v is none of ours (%s)", s, own)
			}
		}
	}
}

// What is kept of several pairs of the same places is the middle one, and nothing of pairs between hosts; other places stay.
func TestMeasuresByPlaces(t *testing.T) {
	p := new(page)
	for k, host := range []string{"one", "one", "one", "one", "two"} {
		copy(p.of[k].host[:], host)
		p.of[k].numa, p.of[k].cache = int32(k%2), 0
	}
	found := make([][]cost.Measured, 5)
	for a := range found {
		for b := range found {
			found[a] = append(found[a], cost.Measured{Rate: float64(1 + 10*a + b), Latency: 1e-6})
		}
	}
	m := measuredMatrix(p, found)
	if m.Ranks[4].Host != 1 || m.Ranks[3].NUMA != 1 || m.Cells[4][0].Source != cost.Measure {
		t.Errorf("%+v", m.Ranks)
	}
	where := store.Where{Folder: t.TempDir()}
	before := cost.NewMeasures(hostTopology())
	if err := before.Set("gpu0", "gpu1", cost.Measured{Rate: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := where.Write(before); err != nil {
		t.Fatal(err)
	}
	if _, err := addTo(where, m, found, 0); err != nil {
		t.Fatal(err)
	}
	all, err := where.Read(hostTopology())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		rate     float64
	}{{"gpu0", "gpu1", 7}, {"numa0/cache0", "numa1/cache0", 22}, {"numa0/cache0", "numa0/cache0", 21}} { // of 2 4 22 24, and of 3 21
		if v, _ := all.Of(c.from, c.to); v.Rate != c.rate {
			t.Errorf("%s to %s: %+v, want %g", c.from, c.to, v, c.rate)
		}
	}
}
