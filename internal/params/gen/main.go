// Command gen writes the C shim's copy of the table of settings. Run it by "go generate ./internal/params" after a change of
// internal/params/table.go; a test of that package fails as long as the copy is old. It is run by people and never by a build.
// It starts in the package's folder, as go generate does, and writes two levels above it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"hccl.dev/hccl/internal/params"
)

func main() {
	path := filepath.Join("..", "..", params.HeaderPath)
	if err := os.WriteFile(path, []byte(params.Header()), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v (run it by go generate ./internal/params)\n", err)
		os.Exit(1)
	}
}
