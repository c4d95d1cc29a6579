package tcp

// Limits that both ends of a connection rely on. Changing one is a change of the wire version.
const (
	MaxSlice    = 256 << 10 // bytes in one slice
	MaxControl  = 2048      // bytes in one control message
	MaxChannels = 64        // channels of a communicator
	slots       = 16        // slices of one flow between Commit and Release; with MaxSlice 4 MiB, as NCCL_BUFFSIZE
)
