// Command gen writes what is made from the table of settings: the C shim's copy, and the list in the manual. Run it by
// "go generate ./internal/params" after a change of internal/params/table.go; a test of that package fails as long as one of them
// is old. It is run by people and never by a build. It starts in the package's folder, as go generate does, and writes from the
// root, two levels above it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"hccl.dev/hccl/internal/params"
)

func main() {
	for path, text := range map[string]string{params.HeaderPath: params.Header(), params.ManualPath: params.Manual()} {
		if err := os.WriteFile(filepath.Join("..", "..", path), []byte(text), 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %v (run it by go generate ./internal/params)\n", err)
			os.Exit(1)
		}
	}
}
