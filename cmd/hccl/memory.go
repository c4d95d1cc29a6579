package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// fits refuses sizes whose buffers this machine has no memory for: Linux would grant them, and end a process when they are filled.
func (j *job) fits(available int) error {
	ranks := j.ranks
	if j.world != nil && !j.world.oneHost {
		ranks = j.perProcess() // what is known of this host
	}
	each := 0
	for k := range j.mix {
		each += 2 * j.mix[k].bytes
	}
	if len(j.subjects) > 0 {
		each = 2 * j.most
		if j.subjects[0].op.apart {
			each = 3 * j.most
		}
	}
	if need := ranks * each; available > 0 && need > available {
		return fmt.Errorf("the buffers of %d ranks need %d MiB, and this machine has %d MiB left: take a smaller size (-e) or fewer ranks",
			ranks, need>>20, available>>20)
	}
	return nil
}

// memoryLeft is what Linux thinks can still be used, in bytes; 0 where that is not known.
func memoryLeft() int {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return availableIn(string(b))
}

func availableIn(meminfo string) int {
	_, rest, found := strings.Cut(meminfo, "MemAvailable:")
	words := strings.Fields(rest)
	if !found || len(words) == 0 {
		return 0
	}
	kib, err := strconv.Atoi(words[0])
	if err != nil {
		return 0
	}
	return kib << 10
}
