package testkit

/*
#include <stdlib.h>

static void turn(size_t size, int window, long rounds) {
	char *held[64] = {0};
	for (long k = 0; k < rounds; k++) {
		char **at = &held[k % window];
		free(*at);
		*at = malloc(size);
		for (size_t b = 0; b < size; b += 4096) ((volatile char *)*at)[b] = 1;
	}
	for (int k = 0; k < window; k++) free(held[k]);
}
*/
import "C"

// Malloc is what a pool of memory is measured beside: it frees the oldest of a window of up to 64 blocks of C's malloc, takes a new one
// and touches its pages, so many times.
func Malloc(size, window, rounds int) { C.turn(C.size_t(size), C.int(window), C.long(rounds)) }
