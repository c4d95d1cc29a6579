package testkit

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Books count what a process holds.
type Books struct{ Goroutines, Descriptors, Mappings int }

// Count takes the books now. Mappings of the Go heap and of thread stacks, which come and go by themselves, are not counted: only
// those of shared memory, which have a name.
func Count() Books {
	fds, _ := os.ReadDir("/proc/self/fd")
	maps, _ := os.ReadFile("/proc/self/maps")
	b := Books{Goroutines: runtime.NumGoroutine(), Descriptors: len(fds)}
	for line := range bytes.Lines(maps) {
		if strings.Contains(string(line), "memfd:") || strings.Contains(string(line), "/dev/shm/") {
			b.Mappings++
		}
	}
	return b
}

// Balanced waits until nothing is held beyond what was held before, and says what is where that does not come to be within d.
func (before Books) Balanced(d time.Duration) error {
	for end := time.Now().Add(d); ; <-time.After(5 * time.Millisecond) {
		now := Count()
		if now.Goroutines <= before.Goroutines && now.Descriptors <= before.Descriptors && now.Mappings <= before.Mappings {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("held before %+v, held now %+v\n%s", before, now, Stacks())
		}
	}
}
