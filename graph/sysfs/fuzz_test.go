package sysfs

import (
	"testing"
	"testing/fstest"

	"hccl.dev/hccl/graph/topo"
)

// Whatever single files say, the machine is read and can be built, without a fault.
func FuzzFiles(f *testing.F) {
	f.Add("0-1", "ff", "10 21", "0x030200", "16.0 GT/s PCIe", "16", "0", "400 Gb/sec (4X NDR)", "b83f:d203:00b1:0001")
	f.Add("0", "x", "", "0x020000", "Unknown", "255", "-1", "2.5 Gb/sec", "0")
	f.Add("0-3:1/2", "1,00000000", "300", "0x0680", "2.5 GT/s", "x4", "99999", "inf Gb/sec", ":::")
	f.Fuzz(func(t *testing.T, online, mask, distance, class, speed, width, numa, rate, guid string) {
		const (
			dev  = "sys/bus/pci/devices/0000:01:00.0/"
			rdma = "sys/class/infiniband/mlx5_0/"
		)
		tree := fstest.MapFS{}
		for name, text := range map[string]string{nodes + "/online": online, nodes + "/node0/cpumap": mask, nodes + "/node0/distance": distance,
			dev + "class": class, dev + "vendor": "0x10de", dev + "max_link_speed": speed, dev + "max_link_width": width,
			dev + "current_link_width": numa, dev + "numa_node": numa, rdma + "ports/1/rate": rate, rdma + "ports/1/state": "4: ACTIVE",
			rdma + "node_guid": guid, "sys/class/net/eth0/speed": width, "sys/class/net/eth0/type": "1", "proc/cpuinfo": online} {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
		m, report := Read(tree, "amd64")
		topo.Clean(m, report)
		if len(report.Faults) > 0 {
			t.Errorf("faults: %v", report.Faults)
		}
		topo.Build(m)
	})
}

func TestSpeeds(t *testing.T) {
	for _, c := range []struct {
		text  string
		rate  int
		known bool
	}{
		{"400 Gb/sec (4X NDR)", 400_000, true}, {"2.5 Gb/sec (1X SDR)", 2_500, true}, {"800 Gb/sec (4X XDR)", 800_000, true},
		{"", usual, false}, {"400", usual, false}, {"-1 Gb/sec", usual, false}, {"NaN Gb/sec", usual, false}, {"9e9 Gb/sec", usual, false},
	} {
		if got, known := rate(c.text); got != c.rate || known != c.known {
			t.Errorf("rate %q: %d, %v", c.text, got, known)
		}
	}
	if got := guid("b83f:d203:00b1:0001"); got != "0xb83fd20300b10001" {
		t.Errorf("guid %s", got)
	}
}

func TestNaturalOrder(t *testing.T) {
	ordered := []string{"eth", "eth1", "eth2", "eth02b", "eth10", "mlx5_2", "mlx5_10", "mlx5_99999999999999999999"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := natural(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
}
