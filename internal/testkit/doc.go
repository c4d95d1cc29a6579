// Package testkit is what tests of several packages need of the world around them: unique ids, settings, a guard against hangs and
// the books of what a process holds.
//
// Unique ids come from C: the maker is part of the shim and starts no Go. Maker is a process of its own that was built from that C
// (core/boot/testdata/root) and makes ids, forks, dies and exits on command. Settings are read through C's getenv, so tests set them
// by Setenv, which is C's as well. Within runs what should end and dumps all goroutines where it does not. Books compares
// goroutines, descriptors and mappings before and after.
//
// It is imported by tests alone and knows no package above internal; what makes ranks of a communicator stands with the tests of
// package core.
package testkit
