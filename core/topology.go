package core

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/cost/store"
	"hccl.dev/hccl/graph/detect"
	"hccl.dev/hccl/graph/fabric"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/internal/regular"
	"hccl.dev/hccl/proto/wire"
)

// What a rank tells the others of its host when they meet: rings that a file asks for, measured costs, a hash of the topology, and the
// checksum of a description. The machine is looked at only where there may be measures, a file describes it, or somebody listens at INFO,
// and once in the life of a process.

// machines are those that were found. A machine does not change, and a driver may take a second to start.
var machines struct {
	mu    sync.Mutex
	found map[sight]*detect.Found             // guarded by mu
	hash  map[string]string                   // guarded by mu; of those without GPUs, by file
	tells map[string]description              // guarded by mu; likewise
	heard map[[sha256.Size]byte]*topo.Machine // guarded by mu; of other hosts, by their descriptions: for later communicators
}

// sight is what a machine was made of: the file to go by, "" for none, and whether a driver was asked for GPUs.
type sight struct {
	file string
	gpus bool
}

// FindGPUs asks the driver for GPUs, which ranks on host memory do not need: only when the machine is written. Nil where the core is
// not linked with a driver's interface, as in Go programs. Set it before the first call.
var FindGPUs detect.Finder

// hostMachine is the machine as the settings want it, without GPUs: ranks on host memory need none.
func hostMachine(file string) *detect.Found { return machineBy(sight{file: file}) }

func machineBy(s sight) *detect.Found {
	machines.mu.Lock()
	defer machines.mu.Unlock()
	if f := machines.found[s]; f != nil {
		return f
	}
	how := detect.Settings{File: s.file}
	if s.gpus {
		how.GPUs = FindGPUs
	}
	if machines.found == nil {
		machines.found = map[sight]*detect.Found{}
	}
	machines.found[s] = detect.Load(how)
	return machines.found[s]
}

// hostTopology is the hash of hostMachine.
func hostTopology(file string) string {
	f := hostMachine(file)
	machines.mu.Lock()
	defer machines.mu.Unlock()
	if machines.hash == nil {
		machines.hash = map[string]string{}
	}
	if machines.hash[file] == "" {
		machines.hash[file] = cost.Hash(topo.Build(f.Machine))
	}
	return machines.hash[file]
}

// description is what a rank can tell of its host, and its checksum.
type description struct {
	packed []byte
	sum    [sha256.Size]byte // zeros: there is nothing to tell
	whyNot string            // why not, where there is a file
}

// hostDescription is the machine that rings are laid for where a file has GPUs for the ranks: nothing else would decide anything.
func hostDescription(file string) (d description) {
	if file == "" {
		return d
	}
	f := hostMachine(file)
	machines.mu.Lock()
	defer machines.mu.Unlock()
	d, known := machines.tells[file]
	if known {
		return d
	}
	gpus := 0
	f.Plan.GPUs(func(*topo.Device, *topo.GPU) { gpus++ })
	switch {
	case f.Unused != "":
		d.whyNot = "cannot be used: " + f.Unused
	case gpus == 0:
		d.whyNot = "has no GPUs"
	default:
		d = describe(file, f.Plan)
	}
	if machines.tells == nil {
		machines.tells = map[string]description{}
	}
	machines.tells[file] = d
	return d
}

func describe(file string, m *topo.Machine) (d description) {
	var text strings.Builder
	_ = ncclxml.Write(&text, m.Bare()) // a Builder takes everything
	d.packed = wire.PackText(text.String())
	if len(d.packed) > boot.MaxBlob || text.Len() > wire.MaxText {
		log.WarnOnce("described "+file, "topology: %s is %d KiB when packed, more than the %d KiB that ranks tell each other: rings go by "+
			"places; leave out of it what no rank uses", file, len(d.packed)>>10, boot.MaxBlob>>10)
		return description{whyNot: "is more than ranks tell each other"}
	}
	d.sum = sha256.Sum256(d.packed)
	return d
}

// describeTopology fills in what a rank tells of its host. Its place stands in p already.
func (c *Comm) describeTopology(p *wire.Peer) {
	v := c.settings
	p.Host, _ = os.Hostname()
	p.Rings = ringsAsked(v.GraphFile)
	p.Switch, p.Pod = plugged(v.FabricFile, p.Host)
	if v.TopoScope != "none" {
		d := hostDescription(v.TopoFile)
		p.Described, p.Size = d.sum, uint32(len(d.packed))
		p.File, p.WhyNot = shorten(v.TopoFile), shorten(d.whyNot)
	}
	where := store.Kept(v.CostFile, params.CacheFolder())
	measured := v.TopoScope != "none" && where.Any()
	if measured || log.On(log.LevelInfo, log.Graph) {
		p.Topology = hostTopology(v.TopoFile)
	}
	if measured {
		p.Rates = rates(where, p)
	}
	p.Fits()
}

// plugged is the network switch that this host hangs on, and its group; what is wrong with the file is told once.
func plugged(file, host string) (name string, group int32) {
	if file == "" {
		return "", -1
	}
	text, err := regular.Read(file, fabric.MostBytes)
	at := fabric.Place{Group: -1}
	if err == nil {
		at, err = fabric.PlaceOf(text, host)
	}
	if err != nil {
		log.WarnOnce("fabric "+file, "HCCL_FABRIC_FILE %s: this host is taken as on no switch: %v", file, err)
		return "", -1
	}
	return at.Switch, int32(at.Group)
}

// rates are the measures from a rank's place to the others.
func rates(where store.Where, p *wire.Peer) (all []wire.Rate) {
	found, err := where.Read(p.Topology)
	if err != nil {
		log.WarnOnce("costs: "+err.Error(), "measured costs: %v", err)
		return nil
	}
	here := cost.Rank{NUMA: int(p.NUMA), Cache: int(p.Cache)}.Place()
	for _, to := range found.From(here) {
		if v, _ := found.Of(here, to); to != here {
			all = append(all, wire.Rate{To: to, Rate: v.Rate})
		}
	}
	return all
}

// ringsAsked are the rings in a NCCL_GRAPH_FILE. What is wrong in it is told once, and the rest counts.
func ringsAsked(file string) (rings []wire.Ring) {
	if file == "" {
		return nil
	}
	searches, report, err := readGraphs(file)
	if err != nil {
		tellGraphFile(file, fmt.Sprintf("it is not used: %v", err))
		return nil
	}
	for _, f := range report.Faults {
		tellGraphFile(file, f.String())
	}
	for _, s := range searches {
		for _, channel := range s.Channels {
			if s.ID == ncclxml.RingID && s.Pattern == ncclxml.Ring {
				ring := wire.Ring{Line: int32(channel.Line)}
				for _, d := range channel.GPUs {
					ring.Devs = append(ring.Devs, int32(d))
				}
				rings = append(rings, ring)
			}
		}
	}
	if rings == nil {
		tellGraphFile(file, "it has no rings (a <graph> with id 0 and pattern 4, with channels) and changes nothing; NCCL_GRAPH_DUMP_FILE "+
			"shows what they look like")
	}
	return rings
}

func tellGraphFile(file, what string) {
	log.WarnOnce("NCCL_GRAPH_FILE "+file+what, "NCCL_GRAPH_FILE %s: %s", file, what)
}

func readGraphs(file string) ([]ncclxml.Search, *topo.Report, error) {
	f, err := regular.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	return ncclxml.ReadSearches(f, nil) // which reads so much and no more
}
