package topo

// Bare is a copy with what a search goes by alone: no names, masks, identities or attributes that are not understood, which differ
// between hosts that are alike, and no lines of a file.
func (m *Machine) Bare() *Machine {
	out := &Machine{}
	for _, c := range m.CPUs {
		out.CPUs = append(out.CPUs, &CPU{NUMA: c.NUMA, Arch: c.Arch, Vendor: c.Vendor, Family: c.Family, Model: c.Model,
			Devices: bareDevices(c.Devices)})
	}
	return out
}

func bareDevices(devices []*Device) (out []*Device) {
	for _, d := range devices {
		b := &Device{BusID: d.BusID, Class: d.Class, IDs: d.IDs, Speed: d.Speed, Width: d.Width, Below: bareDevices(d.Below)}
		for _, g := range d.GPUs {
			b.GPUs = append(b.GPUs, g.bare())
		}
		if d.NIC != nil {
			b.NIC = &NIC{}
			for _, p := range d.NIC.Ports {
				b.NIC.Ports = append(b.NIC.Ports, &Port{Number: p.Number, Mbps: p.Mbps, Port: p.Port, GDR: p.GDR, Coll: p.Coll, Off: p.Off})
			}
		}
		out = append(out, b)
	}
	return out
}

func (g *GPU) bare() *GPU {
	b := &GPU{Number: g.Number, Rank: g.Rank, SM: g.SM, GDR: g.GDR}
	for _, l := range g.NVLinks {
		b.NVLinks = append(b.NVLinks, &NVLink{Target: l.Target, Class: l.Class, Count: l.Count})
	}
	for _, c := range g.C2C {
		b.C2C = append(b.C2C, &ChipLink{Count: c.Count, MBps: c.MBps})
	}
	return b
}
