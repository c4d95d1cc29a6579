package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTopoFabric(t *testing.T) {
	lldp := filepath.Join(t.TempDir(), "lldp.json")
	text := `{"lldp": {"interface": {"lo": {"chassis": {"leaf9": {"id": {"type": "mac", "value": "aa"}}}, "port": {"id": {"value": "1"}}}}}}`
	if err := os.WriteFile(lldp, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"dragonfly:4,2,2", 0, "72 hosts, 36 switches, 162 links"},
		{"fat-tree:4 --table host0", 0, "edge0.0"},
		{lldp, 0, "1 hosts, 1 switches, 1 links"},
		{"fat-tree:5", 1, "even number"},
		{"dragonfly:4", 1, "3 numbers"},
		{"fat-tree:4 --ring host0,hostx", 1, "hostx"},
		{"fat-tree:4 --ring host0", 1, "two or more"},
		{"fat-tree:4 -k 0 --ring all", 1, "1 to 64"},
		{"fat-tree:4 --table core0", 1, "no host"},
		{empty + " --table x", 1, "none"},
		{"nothing-there", 1, "no such file"},
		{"/dev/zero", 1, "at most 16777216 are read"}, // without end
		{"", 1, "name one network"},
		{"fat-tree:4 --ring all --parts 0", 1, "from 1 to 1024"},
	} {
		out, text, status := hccl(t, append([]string{"topo", "fabric"}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(out+text, c.want) {
			t.Errorf("%s: status %d, %s%s; want %d and %q", c.args, status, out, text, c.status, c.want)
		}
	}
}

// What is written can be read, and rings that run at the same time gain from several ways.
func TestTopoFabricRings(t *testing.T) {
	out, _, _ := hccl(t, "topo", "fabric", "dragonfly:4,2,2", "--write")
	file := filepath.Join(t.TempDir(), "net.json")
	if err := os.WriteFile(file, []byte(out), 0o666); err != nil {
		t.Fatal(err)
	}
	ring := "host0,host8,host1,host9,host2,host10"
	out, text, status := hccl(t, "topo", "fabric", file, "--ring", ring, "--ring", "host20,host30", "--json")
	var r ringsReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 {
		t.Fatalf("status %d, %v, %s%s", status, err, out, text)
	}
	if r.Flows != 8 || r.Gain < 2 || r.Link == "" || r.Worst <= 0 {
		t.Errorf("%+v", r)
	}
}
