// Package fast is the hot state of a communicator on one host and the path for its small operations, in C.
//
// Entering Go costs a small operation little in the median but much in the tail, because Go's scheduler wakes threads of its own at
// each entry. So all-reduce, all-gather, reduce-scatter and all-to-all of up to 8 KiB of send data per rank are C: the shim calls Func
// with the communicator's hot state and the item. A rank posts its own data as mail (stamp, fingerprint and up to 48 bytes in one cache
// line), polls the mail of all others, and combines them in the order of their ranks.
//
// The C never sleeps. If the others have not come after some spins and yields it answers -1 and leaves the operation pending and
// the hot state locked; the shim hands the same item to the core, which finds it by Resume and goes on with Poll, sleeping where
// it must. The core does the same steps itself for grouped calls (Post, Poll): peers cannot tell the difference.
//
// All-reduces of two ranks from there up to 2 MiB are C too, in two shots (twoshot.c): what Go adds to each of their slices is 10 to 30 %
// of them. Their slices lie in a room of the rank's arena, lent at first use.
//
// Every operation of lane 0, fast or not, takes its number and posts its header through Begin (or Post), under Lock.
//
// It is not a transport and gives no promise beyond its sizes; it decides nothing about errors: a mismatch, a raised why word and a
// peer that does not come are left pending for the core, its only caller beside the shim.
package fast
