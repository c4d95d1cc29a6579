package core

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
)

// agreement is what decides how a plan looks, so that all ranks of a communicator must hold the same: rank 0's values count.
type agreement struct {
	setting proto.Setting
	slots   int  // of a flow over TCP that are used
	eager   int  // bytes up to which a message does not wait for its receive; -1: as many as pay
	share   bool // ranks of one host share memory: no rank forbids it, and none has failed to
	scope   cost.Scope
	places  []graph.Place
	hosts   map[[32]byte]*topo.Machine // that ranks have described, by the checksum in wire.Peer; only read
	devices []int                      // by rank: the number of the GPU that it is bound to, -1: to none
	found   arrange.Result
	order   *proto.Order // of ranks around rings, those found; nil: by number
}

// shared lists the settings that ranks must agree on, as texts, and the level of the log, which says who can warn.
func shared(v *params.Values) []wire.Setting {
	least, most := v.Channels()
	return []wire.Setting{
		{Name: "NCCL_ALGO", Value: algos(v)},
		{Name: "NCCL_MIN_NCHANNELS", Value: strconv.Itoa(least)},
		{Name: "NCCL_MAX_NCHANNELS", Value: strconv.Itoa(most)},
		{Name: "HCCL_DETERMINISTIC", Value: bit(v.Deterministic)},
		{Name: "HCCL_SHM_SLICE", Value: strconv.FormatInt(v.ShmSlice, 10)},
		{Name: "NCCL_BUFFSIZE", Value: strconv.FormatInt(v.BuffSize, 10)},
		{Name: eagerLimit, Value: strconv.FormatInt(v.EagerLimit, 10)},
		{Name: netSlots, Value: strconv.Itoa(v.NetSlots)},
		{Name: topoScope, Value: v.TopoScope},
		{Name: shmDisable, Value: bit(v.ShmDisable)},
		{Name: debugLevel, Value: v.Debug},
	}
}

// scopes are the values of topoScope.
var scopes = map[string]cost.Scope{"all": cost.All, "local": cost.LocalOnly, "none": cost.Nothing}

const (
	eagerLimit = "HCCL_EAGER_LIMIT"
	netSlots   = "HCCL_NET_SLOTS"
	topoScope  = "HCCL_TOPO_SCOPE"
	shmDisable = "NCCL_SHM_DISABLE" // counts for all if any rank sets it
	debugLevel = "NCCL_DEBUG"       // need not be alike
	shmArena   = "HCCL_SHM_ARENA"   // the same: it is what a rank's process has, and bounds the slices of all
)

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// agree takes rank 0's settings. Shared memory that any rank switches off is off for all.
func agree(me int, peers []wire.Peer) agreement {
	warnOfDifferences(me, peers)
	a := agreement{share: true}
	for i := range peers {
		a.share = a.share && value(peers[i].Settings, shmDisable) != "1"
	}
	first := func(name string) int { return number(value(peers[0].Settings, name)) }
	slice, buff := uint64(first("HCCL_SHM_SLICE")), uint64(first("NCCL_BUFFSIZE"))
	a.setting = proto.Setting{MinChannels: first("NCCL_MIN_NCHANNELS"), MaxChannels: first("NCCL_MAX_NCHANNELS"),
		Reproducible: first("HCCL_DETERMINISTIC") == 1, Slice: min(slice, maxSlice)}
	if a.setting.Slice == 0 && buff/slotsPerPort < defaultSlice {
		a.setting.Slice = max(buff/slotsPerPort&^63, 4<<10)
	}
	a.setting.Most, a.slots, a.eager = mostSlice(peers), first(netSlots), first(eagerLimit)
	// Rank 0 has checked its list by the same parser; another version of the library would have been refused.
	a.setting.Algos, _ = proto.ParseAlgos(value(peers[0].Settings, "NCCL_ALGO"))
	if me == speaker(peers) {
		warnOfUnfit(me, value(peers[0].Settings, "NCCL_ALGO"), &a.setting)
	}
	a.scope = scopes[value(peers[0].Settings, topoScope)]
	return a
}

// cross is for ranks between which there is TCP, between all of them or some. All may be as many slices ahead as keep a network busy: a
// plan may need slots for twice as many.
func (a *agreement) cross(all bool) {
	const deep = 8
	a.setting.Apart, a.setting.Wide = !a.share, true
	if all {
		a.setting.Ahead = min(deep, a.slots/2)
	}
}

// mostSlice bounds slices where an arena is small, so that the ports of a rank fit with all their slots, and those of three communicators
// more. 0: none is as small.
func mostSlice(peers []wire.Peer) uint64 {
	const rooms, share, least = proto.MinSlots, 4, 4 << 10
	most := uint64(defaultSlice)
	for i := range peers {
		if size := number(value(peers[i].Settings, shmArena)); size > 0 {
			most = min(most, uint64(size)/uint64(share*rooms*(len(peers)+1)))
		}
	}
	if most >= defaultSlice {
		return 0
	}
	return max(least, uint64(1)<<(bits.Len64(most)-1)) - proto.SliceEdge
}

// warnOfDifferences has one rank warn, the first whose log takes warnings: all know all settings, and one line is enough. The
// others say it at INFO.
func warnOfDifferences(me int, peers []wire.Peer) {
	texts := differences(peers)
	if apart := filesApart(peers); apart != "" {
		texts = append(texts, apart)
	}
	if texts == nil {
		return
	}
	who := speaker(peers)
	for _, text := range texts {
		if me == who {
			log.Rank(me).Warn("%s", text)
		} else {
			log.Rank(me).Info(log.Env, "%s", text)
		}
	}
}

// speaker is the first rank whose log takes warnings, -1 if there is none.
func speaker(peers []wire.Peer) int {
	return slices.IndexFunc(peers, func(p wire.Peer) bool { return warns(&p) })
}

func warns(p *wire.Peer) bool {
	level, _ := log.ParseLevel(value(p.Settings, debugLevel))
	return level >= log.LevelWarn
}

// warnOfUnfit names the operations that none of the algorithms asked for can do: a forced algorithm that is not used must not be
// found out by comparing times.
func warnOfUnfit(me int, list string, s *proto.Setting) {
	var names []string
	for _, f := range s.Unfit() {
		names = append(names, f.String())
	}
	if names == nil {
		return
	}
	what := strings.Join(names, ", ")
	why := "there are ring, tree, star, direct, oneshot and twoshot, not each for each operation"
	if s.Reproducible {
		why += ", and HCCL_DETERMINISTIC=1 takes no ring and no tree for sums"
	}
	log.Rank(me).WarnOnce("unfit "+list+what, "NCCL_ALGO=%s of rank 0 cannot do %s: the library chooses for these; %s", list, what, why)
}

// differences says for each setting which ranks hold another value than rank 0.
func differences(peers []wire.Peer) []string {
	var out []string
	for _, want := range peers[0].Settings {
		if want.Name == debugLevel || want.Name == shmArena {
			continue
		}
		var others []string // values, in the order of the first rank that holds each
		ranks := map[string][]string{}
		for r := range peers {
			if v := value(peers[r].Settings, want.Name); v != want.Value {
				if ranks[v] == nil {
					others = append(others, v)
				}
				ranks[v] = append(ranks[v], strconv.Itoa(r))
			}
		}
		for k, v := range others {
			others[k] = fmt.Sprintf("%q on rank %s", v, strings.Join(ranks[v], ", "))
		}
		if others != nil {
			rule := "rank 0's value is used by all"
			if want.Name == shmDisable {
				rule = "no rank uses shared memory"
			}
			out = append(out, fmt.Sprintf("%s is %q on rank 0 and %s: %s; set it alike on all ranks", want.Name, want.Value,
				strings.Join(others, ", "), rule))
		}
	}
	return out
}

// value finds a setting by its name, "" where the rank has sent none.
func value(settings []wire.Setting, name string) string {
	for _, s := range settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
