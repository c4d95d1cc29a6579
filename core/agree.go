package core

import (
	"fmt"
	"strconv"
	"strings"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
)

// agreement is what decides how a plan looks, so that all ranks of a communicator must hold the same: rank 0's values count.
type agreement struct {
	setting proto.Setting
	share   bool // shared memory is wanted
}

// shared lists the settings that ranks must agree on, as texts.
func shared(v *params.Values) []wire.Setting {
	least, most := v.Channels()
	return []wire.Setting{
		{Name: "NCCL_ALGO", Value: v.Algo},
		{Name: "NCCL_MIN_NCHANNELS", Value: strconv.Itoa(least)},
		{Name: "NCCL_MAX_NCHANNELS", Value: strconv.Itoa(most)},
		{Name: "HCCL_DETERMINISTIC", Value: strconv.FormatBool(v.Deterministic)},
		{Name: "HCCL_SHM_SLICE", Value: strconv.FormatInt(v.ShmSlice, 10)},
		{Name: "NCCL_BUFFSIZE", Value: strconv.FormatInt(v.BuffSize, 10)},
		{Name: "NCCL_SHM_DISABLE", Value: strconv.FormatBool(v.ShmDisable)},
	}
}

// agree takes rank 0's settings and warns of ranks that hold others. Shared memory that any rank switches off is off for all.
func agree(me int, peers []wire.Peer) (agreement, error) {
	values := map[string]string{}
	for _, s := range peers[0].Settings {
		values[s.Name] = s.Value
	}
	for _, text := range differences(peers) {
		log.Rank(me).Warn("%s", text)
	}
	a := agreement{share: true}
	for i := range peers {
		a.share = a.share && peers[i].CanShare
	}
	least, most := number(values["NCCL_MIN_NCHANNELS"]), number(values["NCCL_MAX_NCHANNELS"])
	slice, buff := uint64(number(values["HCCL_SHM_SLICE"])), uint64(number(values["NCCL_BUFFSIZE"]))
	a.setting = proto.Setting{MinChannels: least, MaxChannels: most, Reproducible: values["HCCL_DETERMINISTIC"] == "true",
		Slice: min(slice, maxSlice)}
	if a.setting.Slice == 0 && buff/slotsPerPort < defaultSlice {
		a.setting.Slice = max(buff/slotsPerPort&^63, 4<<10)
	}
	if text := values["NCCL_ALGO"]; text != "" {
		algos, err := proto.ParseAlgos(text)
		if err != nil {
			log.Rank(me).Warn("NCCL_ALGO=%s is not used: %v", text, err)
		}
		a.setting.Algos = algos
	}
	return a, nil
}

// differences says for each setting which ranks hold another value than rank 0.
func differences(peers []wire.Peer) []string {
	var out []string
	for k, want := range peers[0].Settings {
		var ranks []string
		other := ""
		for r := range peers {
			if k < len(peers[r].Settings) && peers[r].Settings[k].Value != want.Value {
				ranks = append(ranks, strconv.Itoa(r))
				other = peers[r].Settings[k].Value
			}
		}
		if ranks != nil {
			out = append(out, fmt.Sprintf("%s is %q on rank 0 and %q on rank %s: rank 0's value is used by all; set it alike on all ranks",
				want.Name, want.Value, other, strings.Join(ranks, ", ")))
		}
	}
	return out
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
