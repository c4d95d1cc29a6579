package fabric

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// Two forms of one host's neighbours, as lldpd 1.0 writes them.
const (
	twoJSON = `{"lldp": {"interface": [
 {"eth0": {"via": "LLDP", "chassis": {"leaf1": {"id": {"type": "mac", "value": "00:01:02:03:04:05"},
   "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": true}]}},
   "port": {"id": {"type": "ifname", "value": "swp1"}, "descr": "swp1", "ttl": "120"}}},
 {"eth1": {"via": "LLDP", "chassis": {"leaf2": {"id": {"type": "mac", "value": "00:01:02:03:04:06"}}},
   "port": {"id": {"type": "ifname", "value": "swp7"}}}},
 {"docker0": {"via": "LLDP", "chassis": {"other-host": {"id": {"type": "mac", "value": "00:01:02:03:04:07"},
   "capability": [{"type": "Bridge", "enabled": false}, {"type": "Station", "enabled": true}]}},
   "port": {"id": {"type": "mac", "value": "02:42:00:00:00:01"}}}}]}}`
	oneJSON = `{"lldp": {"interface":
 {"eth0": {"chassis": {"id": {"type": "mac", "value": "00:01:02:03:04:05"}}, "port": {"id": {"value": "7"}}}}}}`
	json0 = `{"lldp": [{"interface": [{"name": "eth0", "via": "LLDP", "chassis": [{"id": [{"type": "mac", "value": "aa"}],
   "name": [{"value": "leaf1"}], "capability": [{"type": "Bridge", "enabled": true}]}],
   "port": [{"id": [{"type": "ifname", "value": "swp1"}]}]}]}]}`
)

func TestReadLLDP(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Neighbor
	}{
		{twoJSON, []Neighbor{{"eth0", "leaf1", "swp1"}, {"eth1", "leaf2", "swp7"}}},
		{oneJSON, []Neighbor{{"eth0", "00:01:02:03:04:05", "7"}}},
		{json0, []Neighbor{{"eth0", "leaf1", "swp1"}}},
		{`{"lldp": {}}`, nil},
	} {
		got, err := ReadLLDP([]byte(c.text))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "[]", "{", `{"other": 1}`} {
		if _, err := ReadLLDP([]byte(bad)); err == nil || !strings.Contains(err.Error(), "lldpcli") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzReadLLDP(f *testing.F) {
	for _, s := range []string{twoJSON, oneJSON, json0, `{"lldp": [1, null, {"interface": "x"}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := ReadLLDP(text)
		for _, n := range found {
			if err != nil || n.Interface == "" || n.Switch == "" {
				t.Fatalf("%+v, %v", n, err)
			}
		}
	})
}

func TestFromNeighbors(t *testing.T) {
	neighbors, _ := ReadLLDP([]byte(twoJSON))
	speeds := map[string]float64{"eth0": 25, "eth1": 12.5}
	f := must[*Fabric](t)(FromNeighbors([]Seen{{"n0", neighbors, speeds}, {"n1", neighbors[:1], speeds}, {"n2", neighbors[1:], speeds}}))
	if f.Assumed == "" || f.Find("core (assumed)") < 0 {
		t.Errorf("a core was assumed in silence: %q", f.Assumed)
	}
	r := must[*Router](t)(NewRouter(f, 4))
	for _, c := range []struct {
		to   string
		hops int
	}{{"n1", 2}, {"n2", 2}} {
		if routes := must[[]Route](t)(r.Routes(f.Find("n0"), f.Find(c.to))); routes[0].Hops() != c.hops {
			t.Errorf("n0 to %s: %d hops, want %d", c.to, routes[0].Hops(), c.hops)
		}
	}
	if routes := must[[]Route](t)(r.Routes(f.Find("n1"), f.Find("n2"))); routes[0].Hops() != 4 || routes[0].GBps != 12.5 {
		t.Errorf("n1 to n2: %+v, want 4 hops over the core at 12.5 GB/s", routes[0])
	}
	if _, err := FromNeighbors([]Seen{{"n0", neighbors, nil}}); err == nil || !strings.Contains(err.Error(), "eth0 on host n0") {
		t.Errorf("no speed: %v", err)
	}
}

func TestFileThereAndBack(t *testing.T) {
	f := must[*Fabric](t)(Dragonfly(DragonflySize{2, 1, 1, 0}, 25))
	text, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	again := must[*Fabric](t)(ReadFile(text)) // hosts stand before switches now
	for _, l := range f.Links {
		ends := [2]int{again.Find(f.Nodes[l.From].Name), again.Find(f.Nodes[l.To].Name)}
		if i, ok := again.byEnds[ends]; !ok || again.Links[i].GBps != l.GBps || again.Links[i].Length != l.Length {
			t.Errorf("the link from %s to %s was lost or changed", f.Nodes[l.From].Name, f.Nodes[l.To].Name)
		}
	}
	text2, _ := again.Write()
	third := must[*Fabric](t)(ReadFile(text2))
	if text3, _ := third.Write(); !bytes.Equal(text2, text3) || len(again.Links) != len(f.Links) {
		t.Errorf("written %s, read and written again %s", text2, text3)
	}
	for bad, word := range map[string]string{
		`{"hosts": ["a"], "links": [{"a": "a", "b": "b", "gbps": 1}]}`: `"b"`,
		`{"hosts": ["a", "a"]}`: "two nodes",
		`{"hosts": ["a", "b"], "links": [{"a": "a", "b": "b", "gbps": 0}]}`: "GB/s",
		`{"hots": []}`: "hots",
		`{"hosts": ["a", "b"], "links": [{"a": "a", "b": "b", "gbps": 1, "length": -1}]}`: "length",
	} {
		if _, err := ReadFile([]byte(bad)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %s named", bad, err, word)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte(`{"hosts": ["n0", "n1"], "switches": [{"name": "leaf0", "group": 0}], "links": [{"a": "n0", "b": "leaf0", "gbps": 25}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fabric, err := ReadFile(text)
		if (fabric == nil) == (err == nil) {
			t.Fatalf("%v, %v", fabric, err)
		}
	})
}
