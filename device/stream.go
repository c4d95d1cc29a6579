package device

// An operation has four states: queued, ready (its stream has reached it), running, released. Data moves only between ready and
// released, and a Gate is how the core sees and ends these states. On the NULL stream of host memory an operation is ready at once.

// Gate holds a stream for one operation.
type Gate interface {
	Ready() bool  // the stream has reached the operation
	Release()     // lets the stream go on; also the way out on abort
	Lane() uint32 // the lane of the operation's key: 0, or that of the captured operation which is being replayed
}

// Stream is a queue that a user's work goes through in order.
type Stream interface {
	Queue
	Gate() (Gate, error) // takes the next place in the stream
}

// Processor is one device with its memory. (Device is the kind of memory that only a device may touch.)
type Processor interface {
	// Place tells what is known of an address. It does not touch the memory.
	Place(p Ptr) Place
	// Stream is the stream behind a user's handle. 0 is the NULL stream.
	Stream(handle uintptr) (Stream, error)
	// Alloc returns memory that other processes can open as Place.Share says, aligned to a page and zeroed.
	Alloc(n uint64) (Place, error)
	// Free gives back memory of Alloc; any other address is an error.
	Free(p Ptr) error
	// ValidRange tells whether all of [p, p+n) is memory of this process, without touching it.
	ValidRange(p Ptr, n uint64) bool
}
