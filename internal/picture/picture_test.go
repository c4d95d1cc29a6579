package picture

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPictureIsUpToDate(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", TextPath))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Draw(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if is, err := os.ReadFile(filepath.Join("..", "..", SVGPath)); err != nil || string(is) != want {
		t.Errorf("%s is older than %s (%v): run go generate ./internal/picture", SVGPath, TextPath, err)
	}
	for d := xml.NewDecoder(strings.NewReader(want)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

// Folders that are boxes are there.
func TestBoxesAreFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", TextPath))
	if err != nil {
		t.Fatal(err)
	}
	d, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, b := range d.bands[1 : len(d.bands)-1] {
		for _, x := range b.boxes {
			if x.title == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", "..", x.title)); err != nil {
				t.Errorf("the box %s is no folder of the tree", x.title)
			}
			found++
		}
	}
	if found < 9 {
		t.Errorf("only %d boxes are folders: the test is blind", found)
	}
}

// What cannot be drawn is an error that names the line or the box.
func TestFaultsAreNamed(t *testing.T) {
	const two = "band a\n  x: X\n  y: Y\nband b\n  z: Z\n  w: W\n"
	for text, want := range map[string]string{
		"noise":                            ":1: ",
		"  x: X":                           "below a band",
		"band a\n  x*0: X":                 "no share",
		"band a\n  x: X\n  x: Y":           "two boxes x",
		two + "x -> nobody":                "not there",
		two + "x -> w":                     "no way straight down from x to w",
		two + "z -> x":                     "no way straight down",
		"band a\n  x: X | " + long:         "too narrow",
		"band " + long + "\n  x: X":        "too wide",
		two + "y -> w: " + long:            "leaves the picture",
		"band a\n  x: " + long + long + "": "too narrow for its title",
	} {
		if _, err := Draw(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

var long = strings.Repeat("word ", 40)

// Boxes of a band do not overlap and stay in it; signs that mean something in XML stay text.
func TestLayout(t *testing.T) {
	d, err := parse("title A & B\nband one\n  x*2: <X>\n  y: Y | text\n  z*0.5: Z\nband two\n  w: W\nx -> w\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.layout(); err != nil {
		t.Fatal(err)
	}
	for _, b := range d.bands {
		at := margin + headRoom - between
		for _, x := range b.boxes {
			if x.x < at+between-0.01 || x.y < b.y || x.y+x.h > b.y+b.h || x.x+x.w > width-margin {
				t.Errorf("box %s lies at %.0f,%.0f and is %.0f wide", x.name, x.x, x.y, x.w)
			}
			at = x.x + x.w
		}
	}
	svg, err := Draw("title A & B\nband one\n  x: <X>\n")
	if err != nil || !strings.Contains(svg, "A &amp; B") || !strings.Contains(svg, "&lt;X&gt;") {
		t.Errorf("%v\n%s", err, svg)
	}
}
