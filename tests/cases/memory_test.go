package cases

import "testing"

// At the cap of staging nothing fails: what cannot wait takes memory of its own, each rank says so, and results stay right.
func TestCapOfStaging(t *testing.T) {
	said := sweep(t, append([]string{"HCCL_STAGING_MAX=4194304"}, tcp.env...), 3)
	warned(t, said, 0)
	each(t, said, "staging is at its cap of 4 MiB (HCCL_STAGING_MAX): slices that cannot wait take memory of their own, 1 so far", 1)
	each(t, said, "slices in memory of their own, for it was full", 1) // in the line that takes leave
}

// Other bounds, and slices of any size without a copy: results are right, and the kernel, which copies within a host, is asked on.
func TestBoundsOfStaging(t *testing.T) {
	said := sweep(t, append([]string{"HCCL_STAGING_STEP=8", "HCCL_STAGING_GROWTH=16777216", "HCCL_STAGING_LOCK=0", "HCCL_STAGING_HUGE=0",
		"HCCL_NET_ZEROCOPY=1"}, tcp.env...), 2)
	warned(t, said, 0)
	each(t, said, "the kernel copies them all the same", 0)
	each(t, said, "KiB of at most 512 MiB", 2) // made, and takes leave
}

// The smallest arena serves small jobs: two ranks go without the staging of two shots, for which it has no room, and an operation takes
// what those before it have left lying with ports of the same communicator.
func TestSmallestArena(t *testing.T) {
	warned(t, sweep(t, []string{"HCCL_SHM_ARENA=1048576"}, 2), 0)
}
