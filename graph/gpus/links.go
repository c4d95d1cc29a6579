package gpus

import (
	"encoding/binary"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"hccl.dev/hccl/graph/topo"
)

// hidden is how NVML and NCCL name the far end of an NVLink that a virtual machine does not show.
const hidden = "fffffff:ffff:ff"

// nvlinks counts the links to each far end, in the order of the links.
func (a *adder) nvlinks(g *topo.GPU, d *topo.Device, dev nvml.Device) {
	up, down := 0, 0
	for link := range nvml.NVLINK_MAX_LINKS {
		state, ret := dev.GetNvLinkState(link)
		if ret != nvml.SUCCESS { // this link is none; after a GPU's last one there is no other
			continue
		}
		if state != nvml.FEATURE_ENABLED {
			down++
			continue
		}
		up++
		if can, ret := dev.GetNvLinkCapability(link, nvml.NVLINK_CAP_P2P_SUPPORTED); ret == nvml.SUCCESS && can == 0 {
			continue // it carries something else
		}
		addLink(g, a.far(dev, link))
	}
	if up > 0 && down > 0 {
		a.down = append(a.down, fmt.Sprintf("GPU %s %d of %d", d.BusID, down, up+down))
	}
}

func addLink(g *topo.GPU, far topo.NVLink) {
	for _, l := range g.NVLinks {
		if l.Target == far.Target {
			l.Count++
			return
		}
	}
	far.Count = 1
	g.NVLinks = append(g.NVLinks, &far)
}

// far is the other end of a link: what it is by NVML's word, else by the PCI tree. What cannot be seen is an NVSwitch, which stays
// with the host when GPUs are given to a virtual machine.
func (a *adder) far(dev nvml.Device, link int) topo.NVLink {
	l := topo.NVLink{Target: hidden, Class: topo.ClassNVSwitch}
	pci, ret := dev.GetNvLinkRemotePciInfo(link)
	if ret == nvml.SUCCESS && pci.Domain <= 0xffff && (pci.Domain != 0xffff || pci.Bus != 0xff) {
		l.Target = busID(pci)
	}
	bus, _ := topo.BusNumber(l.Target)
	seen := a.at[bus]
	kind, ret := dev.GetNvLinkRemoteDeviceType(link)
	switch {
	case ret == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_GPU:
		l.Class = topo.ClassGPU
	case ret == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_IBMNPU:
		l.Class = topo.ClassNVLCPU
	case ret == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH:
	case seen != nil:
		l.Class = seen.Class
	}
	return l
}

// chip is the link between a GPU and the CPU on one module, which Grace has.
func (a *adder) chip(g *topo.GPU, dev nvml.Device) {
	const first = 90 // the compute capability of Grace Hopper
	if g.SM < first {
		return
	}
	count, ok := field(dev, nvml.FI_DEV_C2C_LINK_COUNT, 0)
	if !ok {
		return
	}
	for link := range min(count, mostC2C) {
		up, told := field(dev, nvml.FI_DEV_C2C_LINK_GET_STATUS, uint32(link))
		mbps, known := field(dev, nvml.FI_DEV_C2C_LINK_GET_MAX_BW, uint32(link))
		if !told || up == 0 || !known || mbps == 0 || mbps > mostMBps {
			continue
		}
		if n := len(g.C2C); n > 0 && g.C2C[n-1].MBps == int(mbps) {
			g.C2C[n-1].Count++
			continue
		}
		g.C2C = append(g.C2C, &topo.ChipLink{Count: 1, MBps: int(mbps)})
	}
}

const (
	mostC2C  = 64          // links of one GPU
	mostMBps = 100_000_000 // of one
)

// field asks for one of NVML's values that have numbers in place of functions.
func field(dev nvml.Device, id, scope uint32) (uint64, bool) {
	v := []nvml.FieldValue{{FieldId: id, ScopeId: scope}}
	if ret := dev.GetFieldValues(v); ret != nvml.SUCCESS || nvml.Return(v[0].NvmlReturn) != nvml.SUCCESS {
		return 0, false
	}
	switch nvml.ValueType(v[0].ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT, nvml.VALUE_TYPE_SIGNED_INT:
		return uint64(binary.NativeEndian.Uint32(v[0].Value[:4])), true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return binary.NativeEndian.Uint64(v[0].Value[:]), true
	}
	return 0, false
}

// Names of attributes of a GPU in an NVLink fabric of several hosts.
const (
	FabricCluster = "fabric_cluster" // the fabric
	FabricClique  = "fabric_clique"  // the part of it whose GPUs reach each other
)

// fabric notes to which NVLink fabric of several hosts a GPU belongs. On single hosts NVML has a fabric without a number.
func (a *adder) fabric(g *topo.GPU, dev nvml.Device) {
	f, ret := dev.GetGpuFabricInfo()
	if ret != nvml.SUCCESS || f.State != nvml.GPU_FABRIC_STATE_COMPLETED || nvml.Return(f.Status) != nvml.SUCCESS ||
		f.ClusterUuid == [16]uint8{} {
		return
	}
	u := f.ClusterUuid
	g.Extra = append(g.Extra, topo.Attr{Name: FabricCluster, Value: fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])},
		topo.Attr{Name: FabricClique, Value: fmt.Sprint(f.CliqueId)})
}
