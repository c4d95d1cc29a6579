// Package picture draws the picture of the architecture: bands of boxes with arrows between, from a text that people write
// (docs/architecture.txt) to SVG. The layout is a table's: bands from the top down, boxes side by side, as wide as their share.
//
// It is called by go generate, and by its test, which fails when the picture is older than the text. It is no library for drawing:
// it knows what this one picture needs.
package picture

import (
	"fmt"
	"strconv"
	"strings"
)

//go:generate go run hccl.dev/hccl/internal/picture/gen

// Where text and picture lie, from the root of the repository.
const (
	TextPath = "docs/architecture.txt"
	SVGPath  = "docs/architecture.svg"
)

type box struct {
	name, title string // without a title the box is room for arrows to pass
	lines       []string
	share       float64 // of the band's width, among its boxes

	x, y, w, h float64 // set by layout
}

type band struct {
	lines []string // its title
	boxes []*box
	y, h  float64 // set by layout
}

type arrow struct {
	from, to *box
	label    string
}

type drawing struct {
	title  string
	bands  []*band
	arrows []arrow
	height float64
}

// parse reads the text; an error names its line.
func parse(text string) (*drawing, error) {
	d := &drawing{}
	for k, line := range strings.Split(text, "\n") {
		if err := d.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", TextPath, k+1, err)
		}
	}
	return d, nil
}

func (d *drawing) line(line string) error {
	switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); {
	case word == "" || word[0] == '#':
		return nil
	case word == "title":
		d.title = rest
		return nil
	case word == "band":
		d.bands = append(d.bands, &band{lines: strings.Split(rest, " | ")})
		return nil
	case strings.HasPrefix(rest, "-> "):
		return d.arrow(word, strings.TrimPrefix(rest, "-> "))
	case strings.HasPrefix(line, " "):
		return d.box(strings.TrimSpace(line))
	}
	return fmt.Errorf("%q is no title, band, box or arrow", line)
}

func (d *drawing) box(line string) error {
	name, rest, ok := strings.Cut(line, ":")
	if !ok || d.bands == nil {
		return fmt.Errorf("want a box as name: title | text, below a band")
	}
	b := &box{share: 1}
	name, share, weighted := strings.Cut(name, "*")
	if weighted {
		var err error
		if b.share, err = strconv.ParseFloat(share, 64); err != nil || b.share <= 0 {
			return fmt.Errorf("%q is no share of the width", share)
		}
	}
	if d.find(name) != nil {
		return fmt.Errorf("there are two boxes %s", name)
	}
	words := strings.Split(strings.TrimSpace(rest), " | ")
	b.name, b.title, b.lines = name, words[0], words[1:]
	last := d.bands[len(d.bands)-1]
	last.boxes = append(last.boxes, b)
	return nil
}

func (d *drawing) arrow(from, rest string) error {
	to, label, _ := strings.Cut(rest, ": ")
	a := arrow{d.find(from), d.find(to), label}
	if a.from == nil || a.to == nil {
		return fmt.Errorf("an arrow from %s to %s: one of these boxes is not there", from, to)
	}
	d.arrows = append(d.arrows, a)
	return nil
}

func (d *drawing) find(name string) *box {
	for _, b := range d.bands {
		for _, x := range b.boxes {
			if x.name == name {
				return x
			}
		}
	}
	return nil
}
