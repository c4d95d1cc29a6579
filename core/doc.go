// Package core owns communicators. It makes them, runs what is asked of them, and says why something failed. It alone knows all the
// parts below: it meets the ranks by boot, chooses transports (shm, net/tcp), has proto plan collectives, and has device move and
// reduce memory. It moves no byte of an operation itself and knows no C type: capi and the Go package for users call it.
//
// In the order in which an operation's data moves:
//
//	call.go, group.go     a call, or the items of a group; Do is one call on the calling thread, Enqueue everything else
//	launch.go             calls on streams, which return at once; stream.go and event.go are what they stand on
//	request.go, wait.go   requests, which go on beside calls in the same turn; pump.go moves them while no call does
//	schedule.go           jobs, on goroutines: what non-blocking communicators or streams have queued
//	batch.go, yield.go    the communicators of one thread's calls, driven together: spin, yield, sleep, and look why nothing moves
//	turn.go               one communicator's collectives, one after the other, by mail (shm/fast) or by plan.go
//	messages*.go, match.go   point-to-point messages beside them
//
// Around it: init.go, agree.go, connect.go, vote.go make a communicator; life.go has its stages; split.go divides it; close.go ends
// it; fault.go finds out who differs or is gone, with what control.go tells over TCP, and telling.go says it; memory.go keeps
// registrations; result.go has the errors.
//
// Locks, in the order in which they are taken:
//
//	the hot lock (shm/fast)   the turn: whoever begins operations holds it to their end; of several communicators by their numbers.
//	                          C takes it by trying, and may leave an operation pending with it, which Do takes over
//	Comm.mu                   registrations
//	scheduler.mu              queues of jobs, of communicators and of streams; requests; nothing that locks is called with it
//	registry.mu, roster.mu    numbers of communicators, streams and events
//
// Abort takes none of them: it raises a word that every wait looks at, counts the calls inside out, and only then releases memory.
// Fields without a lock are written before the stage becomes made and never again, or are atomic.
package core
