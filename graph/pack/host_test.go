package pack_test

import (
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// Two GPUs with NVLinks between them; GPU 0's device has a second rank, 2. One port.
const sharedGPU = `<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
 <pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
  <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu>
  <gpu dev="0" sm="80" rank="2" gdr="1"/></pci>
 <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
  <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:01:00.0" count="4" tclass="0x030200"/></gpu></pci>
 <pci busid="0000:03:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16">
  <nic><net name="n0" dev="0" speed="100000" gdr="1"/></nic></pci></cpu></system>`

func host(t *testing.T, text string) *pack.Host {
	t.Helper()
	m, _, err := ncclxml.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	h := pack.NewHost(path.New(topo.Build(m)))
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRanksThatShareAGPU(t *testing.T) {
	h := host(t, sharedGPU)
	at := func(rank int) int { return slices.Index(h.Ranks, rank) }
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{at(0), at(2), "gpu0 gpu2"},
		{at(2), at(1), "gpu2 gpu1"}, // not by the name of the device that it shares
		{at(1), at(2), "gpu1 gpu2"},
		{at(2), 3, "gpu2 cpu0 nic0000:03:00.0 net0"},
		{3, at(2), "net0 nic0000:03:00.0 cpu0 gpu2"},
	} {
		if got := strings.Join(h.Path(c.from, c.to), " "); got != c.want {
			t.Errorf("path of devices %d to %d: %s, want %s", c.from, c.to, got, c.want)
		}
	}
	for _, name := range h.Names {
		if h.Double(name) {
			t.Errorf("%s is the name of several nodes", name)
		}
	}
	r := pack.Search(&h.Network, 1, pack.Thorough)
	if got := r.Limit.Bus; got < 103.9 || got > 104.1 { // NVLink's 80 and PCI's 24 take the data of two ranks to the third
		t.Errorf("bound %g, want 104", got)
	}
	if bus, _ := r.AllGather(); bus < 0.99*r.Limit.Bus || r.Rings.Bus < 79.9 {
		t.Errorf("all-gather of %g, rings of %g, bound %g", bus, r.Rings.Bus, r.Limit.Bus)
	}
}

func TestSwitchesOfOneNameAreTold(t *testing.T) {
	h := host(t, strings.NewReplacer(`<pci busid="0000:01`, `<pci busid="0000:09:00.0" class="0x060400"><pci busid="0000:01`,
		`rank="2" gdr="1"/></pci>`, `rank="2" gdr="1"/></pci></pci>`,
		`<pci busid="0000:02`, `<pci busid="0000:09:00.0" class="0x060400"><pci busid="0000:02`,
		`count="4" tclass="0x030200"/></gpu></pci>`, `count="4" tclass="0x030200"/></gpu></pci></pci>`).Replace(sharedGPU))
	if !h.Double("pci0000:09:00.0") || h.Double("cpu0") || h.Double("gpu0") {
		t.Errorf("of %v only the switches have one name", h.Names)
	}
}
