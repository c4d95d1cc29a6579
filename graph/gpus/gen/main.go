// Command gen writes names.h: the functions of NVML that go-nvml calls, for stubs.S and bind.c. Run it by
// "go generate ./graph/gpus" after go-nvml has been changed in go.mod; a test of that package fails as long as the list is old.
// It is run by people and never by a build, and starts in the package's folder, as go generate does.
package main

import (
	"fmt"
	"os"

	"hccl.dev/hccl/graph/gpus/gen/names"
)

func main() {
	text, err := names.Header()
	if err == nil {
		err = os.WriteFile("names.h", []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v (run it by go generate ./graph/gpus)\n", err)
		os.Exit(1)
	}
}
