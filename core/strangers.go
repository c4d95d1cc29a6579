package core

import (
	"sync/atomic"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
)

// MakerStrangers counts the strangers at the maker of ids of this process, which is not part of the core. Set before the first
// communicator is made; nil: there is none.
var MakerStrangers func() uint64

var strangersTold atomic.Uint64

// tellStrangers says how many connections this process has turned away, when there are more than were told: port scans, monitors and
// programs that took a port of ours for theirs neither delay nor fail a job, but who looks for them finds them here.
func tellStrangers() {
	if !log.On(log.LevelInfo, log.Net) {
		return
	}
	var maker uint64
	if MakerStrangers != nil {
		maker = MakerStrangers()
	}
	ranks, ports := boot.Strangers()
	if n := maker + ranks; n > strangersTold.Load() {
		strangersTold.Store(n)
		log.Info(log.Net, "strangers: %d connections that proved nothing were turned away so far, %d where ranks listen (%s) and %d where ids "+
			"are made", n, ranks, ports, maker)
	}
}
