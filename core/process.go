package core

import (
	"crypto/rand"
	"sync"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/shm"
)

// Library is the library's version and place, for logs and for the texts of ranks that load another. Set it before the first call.
var Library = "HCCL"

// hostQueue is where all commands on host memory go.
var hostQueue device.Queue = host.Queue{}

// sharing is this process's part in shared memory: made once, at the first communicator that may use it.
var sharing struct {
	once     sync.Once
	local    *shm.Local
	err      error
	arenaKey shm.Key // random; told only to ranks of a communicator of this process
}

// share returns this process's Local, or why there is none.
func share(v *params.Values) (*shm.Local, error) {
	sharing.once.Do(func() {
		shm.ArenaLimit = uint64(v.ShmArena)
		sharing.arenaKey = newKey()
		if sharing.local, sharing.err = shm.Open(); sharing.err != nil {
			log.Warn("ranks of this process use TCP: shared memory is not possible here: %v", sharing.err)
			return
		}
		if why := sharing.local.Fallback(); why != "" {
			log.InfoOnce(log.Init, "arena", "staging is a file in /dev/shm: %s", why)
		}
		sharing.local.OfferArena(sharing.arenaKey)
	})
	return sharing.local, sharing.err
}

// boundStaging sets the bounds of the memory in which slices to other hosts wait. The first communicator's settings count.
func boundStaging(v *params.Values) {
	staging.Shared.Configure(staging.Options{Initial: uint64(v.StagingInit), Most: uint64(v.StagingMax), Growth: uint64(v.StagingGrowth),
		Step: uint64(v.StagingStep), NoLock: !v.StagingLock, NoHuge: !v.StagingHuge})
}

func newKey() (k shm.Key) {
	_, _ = rand.Read(k[:]) // never fails: crypto/rand.Read's contract
	return k
}
