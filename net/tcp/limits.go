package tcp

// Limits that both ends of a connection rely on. Changing one is a change of the wire version.
const (
	MaxSlice    = 256 << 10 // bytes in one slice
	MaxControl  = 2048      // bytes in one control message
	MaxChannels = 64        // channels of a communicator
	MaxRails    = 8         // connections between two ranks
	slots       = 32        // slices of one flow between Commit and Release: enough that a slow rail does not hold up a fast one
)
