// Command gen draws the picture of the architecture anew. go generate runs it in internal/picture.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"hccl.dev/hccl/internal/picture"
)

func main() {
	if err := draw(filepath.Join("..", "..")); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v (run it by go generate ./internal/picture)\n", err)
		os.Exit(1)
	}
}

func draw(root string) error {
	text, err := os.ReadFile(filepath.Join(root, picture.TextPath))
	if err != nil {
		return err
	}
	svg, err := picture.Draw(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, picture.SVGPath), []byte(svg), 0o644)
}
