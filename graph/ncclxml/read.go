package ncclxml

import (
	"fmt"
	"io"

	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// Read makes a machine of a file and says what is wrong with the file. The machine has been cleaned. An error means that there is
// no machine: an *Error where the text is no XML or no topology, else what in.Read returned.
func Read(in io.Reader) (*topo.Machine, *topo.Report, error) {
	root, err := parse(in)
	if err != nil {
		return nil, nil, err
	}
	if root.name != "system" {
		return nil, nil, &Error{root.line, fmt.Sprintf("the root is <%s>, not <system>", shorten(root.name)), otherKind(root.name)}
	}
	r := &reader{report: &topo.Report{}, taken: map[string]bool{}}
	m := r.system(root)
	if r.xgmi > 0 {
		r.report.Note(root.line, fmt.Sprintf("%d <xgmi> links are of AMD's GPUs and are not counted", r.xgmi),
			"write <nvlink> entries to have them counted as NVLinks")
	}
	topo.Clean(m, r.report)
	r.report.Sort()
	return m, r.report, nil
}

func otherKind(root string) string {
	if root == "graphs" {
		return "this is the result of a search (NCCL_GRAPH_FILE), not a topology"
	}
	return "give a topology as NCCL writes it with NCCL_TOPO_DUMP_FILE"
}

func (r *reader) system(root *element) *topo.Machine {
	m := &topo.Machine{}
	switch version := r.text(root, "version"); version {
	case "1":
	case "2":
		r.report.Note(root.line, "version 2 is AMD's form of the format; it is read as version 1",
			"NCCL itself refuses it: write version=\"1\" for NCCL")
	default:
		r.fault(root, fmt.Sprintf("<system> has version %q; it is read as version 1", shorten(version)), "write version=\"1\"")
	}
	r.rest(root)
	for _, e := range root.children {
		if e.name == "cpu" {
			m.CPUs = append(m.CPUs, r.cpu(e))
		} else {
			r.misplaced(e, root)
		}
	}
	return m
}

func (r *reader) cpu(e *element) *topo.CPU {
	r.needs(e, "numaid", "0 is taken", "write the number of the NUMA node, -1 where the machine does not tell")
	short := bounds{0, 1 << 16, 0}
	c := &topo.CPU{Line: e.line, NUMA: r.integer(e, "numaid", bounds{-1, 1 << 20, 0}), Affinity: r.text(e, "affinity"),
		Arch: r.text(e, "arch"), Vendor: r.text(e, "vendor"), Family: r.integer(e, "familyid", short), Model: r.integer(e, "modelid", short)}
	c.Extra = r.rest(e)
	for _, child := range e.children {
		switch child.name {
		case "pci":
			if d := r.device(child); d != nil {
				c.Devices = append(c.Devices, d)
			}
		case "nic":
			c.Devices = append(c.Devices, &topo.Device{Line: child.line, NIC: r.nic(child)})
		default:
			r.misplaced(child, e)
		}
	}
	return c
}

// places says under what each element stands.
var places = map[string]string{"cpu": "system", "pci": "cpu or pci", "gpu": "pci", "nic": "pci or cpu", "net": "nic",
	"nvlink": "gpu", "c2c": "gpu"}

// misplaced reports an element that is ignored where it stands, with the devices below it that are lost.
func (r *reader) misplaced(e, parent *element) {
	place, known := places[e.name]
	switch {
	case e.name == "xgmi":
		r.xgmi++
	case known:
		r.fault(e, fmt.Sprintf("<%s> stands in <%s> and is ignored%s", e.name, parent.name, losses(e)),
			fmt.Sprintf("put it into <%s>", place))
	default:
		r.fault(e, fmt.Sprintf("<%s> in <%s> is no element of a topology and is ignored%s", shorten(e.name), parent.name, losses(e)),
			"take it out")
	}
}

// losses tells which GPUs and ports go with an element.
func losses(e *element) string {
	gpus, ports := 0, 0
	var count func(*element)
	count = func(e *element) {
		switch e.name {
		case "gpu":
			gpus++
		case "net":
			ports++
		}
		for _, c := range e.children {
			count(c)
		}
	}
	count(e)
	if gpus+ports == 0 {
		return ""
	}
	return fmt.Sprintf(", and with it %s and %s", plural.Of(gpus, "GPU"), plural.Of(ports, "network port"))
}
