// Package hccl lets the ranks of a parallel program work on each other's data: sums over all ranks, broadcasts, gathers, exchanges
// and messages, on slices of Go numbers. Ranks are goroutines of one program, processes, or both.
//
// One rank makes an id and passes it to the others by any means; all then call Init, and hold a Comm each:
//
//	id, err := hccl.NewID()                        // on one rank; its Text travels in a file, a flag, an environment variable
//	c, err := hccl.Init(ctx, id, rank, n)          // on all ranks, which wait for each other
//	err = hccl.AllReduce(ctx, c, mine, sum, hccl.Sum)
//	err = c.Close()
//
// Operations are functions, because Go's methods have no type parameters of their own. All ranks of a communicator must make the
// same calls in the same order; ranks that do not are told so, with both calls, in the error. A call returns when its result is
// there, or, asked of a Stream, at once. Calls may come from several goroutines, but their order is then the program's affair.
//
// Lengths say what is meant: nothing is counted twice. A slice that does not fit is refused before anything begins, with the length
// that is needed, and the communicator stays sound. An operation is in place when both slices are the same one, or where one is
// larger, when the smaller is the part of it at this rank's place. Slices that overlap in another way are refused. A rank that does
// not use a slice (the result of Reduce away from its root) may pass nil.
//
// # Contexts
//
// A context is a limit on the wait. One that ends while an operation waits aborts the communicator, since ranks that have given
// half an operation cannot go on: the call returns an Error that is the context's error too, and the other ranks learn who gave up.
// One that has ended before the call begins stops this call only. A context that can end costs about a microsecond per call,
// context.Background nothing.
//
// # Errors
//
// Errors are *Error: a sentence, a Kind for errors.Is, and the numbers of the ranks that it is about. After any other than
// ErrArgument the communicator is of no more use and should be closed.
//
// # Waiting, and Go's scheduler
//
// A call that waits first spins, then gives way, then sleeps in the operating system. It does not park its goroutine, which would
// cost more than most operations take: for up to 0.2 ms it occupies one of GOMAXPROCS processors, and after that a thread. Where the
// ranks of a program outnumber GOMAXPROCS, as it was when the last communicator was made, giving way lets other goroutines run, so
// that the ranks get forward by turns. Slices are pinned for the duration of a call. A call without V counts, outside a group and
// with a context that cannot end, allocates nothing.
//
// The package is the core of libnccl.so.2 without its C interface: programs of both kinds can share a communicator if they come by
// the same id. docs/go.md has the whole in the order of a first reading.
package hccl
