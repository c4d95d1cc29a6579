// Package host is memory, queues and arithmetic on the processors of this machine: the device that is always there.
//
// The arithmetic is C (cmd.h is its interface, run.c its entry): loops over all element types, reductions and roundings, written
// once in kernels.inc and compiled for plain x86-64 (or any other architecture), AVX2 and AVX-512. The best set is chosen when
// the first command runs. All of them give the same bits; docs/numerics.md is the contract that they keep.
//
//	queue.go    Submit: commands run on the calling thread, so every Fence is done
//	run.c       a command in blocks that stay in the first-level cache; shape.c what a command needs, select.c which loops
//	memory.go   memory for ncclMemAlloc, which other processes can open; map_unsafe.go how it is mapped, and what else is
//	stream.go   the NULL stream
//
// It is not a transport: memory that ranks share belongs to package shm. It knows no rank and no plan, takes no lock while
// commands run, and keeps nothing of a command. Addresses that it is given are the caller's promise: a wrong one is the process's
// SIGSEGV, as it is in memcpy. Who only suspects an address asks ValidRange first.
//
// proto submits commands; core allocates for the user and hands RunFunc's address to the C of package shm/fast.
package host
