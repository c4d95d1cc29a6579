package core

import (
	"fmt"
	"slices"
	"strings"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/internal/plural"
	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
)

// What a rank says of itself at INFO, in a handful of lines: how its communicator was made and what it holds, by what it reaches
// which ranks and why by nothing better, and the algorithm of each kind of operation when it is first used. Nothing here runs per
// operation.

// introduce says that the communicator is made, how and since when.
func (c *Comm) introduce(how string) {
	if c.n > 1 && c.rank == 0 && log.On(log.LevelInfo, log.Graph) {
		c.log.Info(log.Graph, "communicator %s: its ranks are on %s", c.label(), c.agreed.around())
		tellHosts(c.log, c.peers)
	}
	if c.rank == 0 && c.direct() {
		c.log.Info(log.Tuning, "communicator %s: operations of up to 8 KiB, and all-reduces of two ranks up to 2 MiB, are done in shared memory "+
			"without a plan; the algorithm of others is told when it is first used", c.label())
	}
	if !log.On(log.LevelInfo, log.Init) {
		return
	}
	c.log.Info(log.Init, "communicator %s: rank %d of %d %s in %v; %s", c.label(), c.rank, c.n, how, &c.phases, c.holds())
	for _, text := range c.paths() {
		c.log.Info(log.Init, "communicator %s: rank %d uses %s", c.label(), c.rank, text)
	}
	tellStrangers()
}

// takeLeave says that the communicator ends, and what it still held.
func (c *Comm) takeLeave() {
	if log.On(log.LevelInfo, log.Init) {
		c.log.Info(log.Init, "communicator %s: rank %d leaves; %s", c.label(), c.rank, c.holds())
	}
	if c.net != nil && log.On(log.LevelInfo, log.Net) {
		c.tellRails()
	}
	tellRegistrations(c.log)
	tellStrangers()
}

// holds says what memory the communicator has.
func (c *Comm) holds() string {
	if c.seg == nil {
		return "it is alone and holds no memory to share"
	}
	segment, held, limit := c.seg.Held()
	text := fmt.Sprintf("its segment has %d KiB", segment>>10)
	if limit != 0 {
		text += fmt.Sprintf(", staging of this process %d KiB of at most %d MiB", held>>10, limit>>20)
	}
	if c.net != nil {
		text += fmt.Sprintf(", staging for TCP %v", staging.Shared.Stats())
	}
	return text
}

// paths says for each group of ranks what they are reached by, and why not by something better.
func (c *Comm) paths() (texts []string) {
	var whys []string
	ranks := map[string][]int{}
	for r := range c.peers {
		if r == c.rank {
			continue
		}
		why := c.why(r)
		if ranks[why] == nil {
			whys = append(whys, why)
		}
		ranks[why] = append(ranks[why], r)
	}
	for _, why := range whys {
		texts = append(texts, strings.Replace(why, "@", "to "+list(ranks[why]), 1))
	}
	return texts
}

// why is the path to rank r, with @ where the ranks are to stand.
func (c *Comm) why(r int) string {
	me, p := &c.peers[c.rank], &c.peers[r]
	switch {
	case c.isNear(r) && p.Exchange == me.Exchange:
		return "shared memory @, in this process"
	case c.isNear(r):
		return "shared memory @, in other processes of this host"
	case p.BootID != me.BootID:
		return "TCP @, on another host"
	case c.settings.ShmDisable:
		return fmt.Sprintf("TCP @, on this host: NCCL_SHM_DISABLE=1 (%s)", c.settings.Place("NCCL_SHM_DISABLE"))
	case !me.CanShare:
		return "TCP @, on this host: shared memory is not possible in this process, see the warning"
	case value(p.Settings, "NCCL_SHM_DISABLE") == "1":
		return "TCP @, on this host: NCCL_SHM_DISABLE=1 there"
	case !p.CanShare:
		return "TCP @, on this host: shared memory is not possible there, see its warning"
	case p.NetNS != me.NetNS:
		return "TCP @, on this host: in another network namespace, where the memory cannot be handed over"
	case slices.ContainsFunc(c.peers, func(p wire.Peer) bool { return value(p.Settings, shmDisable) == "1" }):
		return "TCP @, on this host: NCCL_SHM_DISABLE=1 on another rank, which counts for all"
	}
	return "TCP @, on this host: mapping the memory failed, see the warning"
}

// list writes ranks as "rank 3" or "ranks 0-2, 5".
func list(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if parts = append(parts, itoa(ranks[i])); j > i {
			parts[len(parts)-1] += "-" + itoa(ranks[j])
		}
		i = j + 1
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}

// tellPlan says which algorithm a kind of operation uses on how many channels, when the first such plan is built. Small operations, that
// go by mail, have none.
func (c *Comm) tellPlan(call *Call, choice proto.Choice) {
	if !log.On(log.LevelInfo, log.Tuning) {
		return
	}
	for key := range c.plans {
		if key.Func == call.Func && key.Algo == choice.Algo && key.Channels == choice.Channels {
			return
		}
	}
	why := ""
	if choice.Ignored {
		why = ": what was asked for by NCCL_ALGO or the call's config cannot do it here"
	}
	c.log.Info(log.Tuning, "communicator %s: %v of %d elements of %v uses %v on %s, in slices of %d KiB%s", c.label(), call.Func,
		call.Count, call.Type, choice.Algo, plural.Of(choice.Channels, "channel"), choice.Slice>>10, why)
}

// trace writes a call of the program.
func (c *Comm) trace(call *Call) {
	c.log.Trace(log.Call, "communicator %s: %v of %d elements of %v, %v, root or peer %d, from %#x to %#x", c.label(), call.Func, call.Count,
		call.Type, call.Red, call.Root, call.Send, call.Recv)
}

// algos is the list of algorithms that counts for this rank: one that cannot be read is reported and counts as not set.
func algos(v *params.Values) string {
	if _, err := proto.ParseAlgos(v.Algo); err != nil {
		log.WarnOnce("bad NCCL_ALGO="+v.Algo, "NCCL_ALGO=%s (%s) is not used: %v; all algorithms stay open", v.Algo, v.Place("NCCL_ALGO"), err)
		return ""
	}
	return v.Algo
}
