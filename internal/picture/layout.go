package picture

import (
	"fmt"
	"unicode/utf8"
)

// Lengths in the picture's unit, which is a pixel where it is shown in its own size.
const (
	width     = 1080.0
	margin    = 16.0
	inner     = 12.0  // from a band's edge to its boxes
	between   = 16.0  // boxes of a band
	headRoom  = 190.0 // a band's title, at its left: arrows come from above
	gap       = 30.0  // between bands, for arrows and their labels
	titleRoom = 44.0
	nameSize  = 15.0 // of letters: a box's title
	textSize  = 12.0
	lineStep  = 16.0
	boxHead   = 24.0 // a box's title and what is above it
	boxFoot   = 10.0
	beside    = 8.0 // from an arrow to its label
)

// wide is a careful guess at the width of a letter, as a part of its size: fonts differ from viewer to viewer.
const wide = 0.57

func textWidth(text string, size float64) float64 {
	return float64(utf8.RuneCountInString(text)) * size * wide
}

// layout gives all bands and boxes their places. It fails where a text would leave its box.
func (d *drawing) layout() error {
	y := titleRoom
	for _, b := range d.bands {
		rows := 0
		for _, x := range b.boxes {
			rows = max(rows, len(x.lines))
		}
		high := boxHead + float64(rows)*lineStep + boxFoot
		b.y, b.h = y, high+2*inner
		b.place(y+inner, high)
		y += b.h + gap
		if err := b.fits(); err != nil {
			return err
		}
	}
	d.height = y - gap + margin
	return nil
}

func (b *band) place(y, high float64) {
	total := 0.0
	for _, x := range b.boxes {
		total += x.share
	}
	room := width - 2*margin - headRoom - inner - between*float64(len(b.boxes)-1)
	at := margin + headRoom
	for _, x := range b.boxes {
		x.x, x.y, x.w, x.h = at, y, room*x.share/total, high
		at += x.w + between
	}
}

func (b *band) fits() error {
	for _, line := range b.lines {
		if textWidth(line, textSize) > headRoom-inner {
			return fmt.Errorf("the band's title %q is too wide: break it with |", line)
		}
	}
	for _, x := range b.boxes {
		if err := x.fits(); err != nil {
			return err
		}
	}
	return nil
}

func (x *box) fits() error {
	for _, line := range x.lines {
		if textWidth(line, textSize) > x.w-10 {
			return fmt.Errorf("box %s is too narrow for %q: shorten it, or widen the box", x.name, line)
		}
	}
	if textWidth(x.title, nameSize) > x.w-10 {
		return fmt.Errorf("box %s is too narrow for its title", x.name)
	}
	return nil
}

const narrow = 24.0 // the least that two boxes must lie above each other for an arrow between them

// route finds the arrow's way: straight down, in the middle of what the two boxes have above each other. Arrows that slant would cross
// what stands between.
func (a arrow) route() (x, from, to float64, err error) {
	left, right := max(a.from.x, a.to.x), min(a.from.x+a.from.w, a.to.x+a.to.w)
	if right-left < narrow || a.to.y < a.from.y {
		return 0, 0, 0, fmt.Errorf("no way straight down from %s to %s: order the boxes so that one lies below the other", a.from.name, a.to.name)
	}
	x = (left + right) / 2
	if x+beside+textWidth(a.label, textSize) > width-margin {
		return 0, 0, 0, fmt.Errorf("the label %q of the arrow from %s leaves the picture: shorten it", a.label, a.from.name)
	}
	return x, a.from.y + a.from.h, a.to.y, nil
}
