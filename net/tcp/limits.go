package tcp

// Limits that both ends of a connection rely on. Changing one is a change of the wire version.
const (
	MaxSlice    = 256 << 10 // bytes in one slice
	MaxControl  = 2048      // bytes in one control message
	MaxChannels = 64        // channels of a communicator
	MaxPaths    = 8         // ways between two processes: from an interface here to one there
	MaxSockets  = 8         // rails by one of them
	MaxRails    = MaxPaths * MaxSockets
	slots       = 32 // slices of one flow between Commit and Release: enough that a slow rail does not hold up a fast one
)

// Rail is the number of the rail that is a socket of a path. The first sockets of the paths have the paths' numbers.
func Rail(path, socket int) int { return path + MaxPaths*socket }

// Place is the path and the socket that a rail's number stands for.
func Place(rail int) (path, socket int) { return rail % MaxPaths, rail / MaxPaths }
