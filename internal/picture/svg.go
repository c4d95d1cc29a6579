package picture

import (
	"fmt"
	"html"
	"strings"
)

// style has two sets of colours. The picture brings its own ground, so that it can be read wherever it is shown, also by viewers that
// do not know whether the page is dark.
const style = `
  .ground { fill: #fbfbf8; stroke: #c9ccd1 }
  .band { fill: #eef1f4; stroke: none }
  .box { fill: #ffffff; stroke: #5b7083; stroke-width: 1.2 }
  .head { fill: #40566b; font-size: 12px; font-weight: 600; letter-spacing: .3px }
  .name { fill: #14212d; font-size: 15px; font-weight: 600 }
  .text { fill: #3a4a58; font-size: 12px }
  .label { fill: #8a4b08; font-size: 12px }
  .arrow { stroke: #b5651d; stroke-width: 1.6; fill: none }
  .tip { fill: #b5651d }
  text { font-family: "Helvetica Neue", Arial, "DejaVu Sans", sans-serif }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #161b22; stroke: #3a434e }
    .band { fill: #212934 }
    .box { fill: #0f141a; stroke: #7f95aa }
    .head { fill: #a9bdd0 }
    .name { fill: #f0f4f8 }
    .text { fill: #c2ccd6 }
    .label { fill: #f0b072 }
    .arrow { stroke: #d98e4a }
    .tip { fill: #d98e4a }
  }
`

// Draw makes the picture of a text.
func Draw(text string) (string, error) {
	d, err := parse(text)
	if err != nil {
		return "", err
	}
	if err := d.layout(); err != nil {
		return "", err
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n",
		width, d.height, width, d.height)
	fmt.Fprintf(&s, "<!-- made from %s by go generate ./internal/picture -->\n<title>%s</title>\n<style>%s</style>\n",
		TextPath, html.EscapeString(d.title), style)
	s.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">` +
		`<path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>` + "\n")
	fmt.Fprintf(&s, `<rect class="ground" x="1" y="1" width="%.0f" height="%.0f" rx="10"/>`+"\n", width-2, d.height-2)
	words(&s, "name", width/2, 29, "middle", d.title)
	for _, b := range d.bands {
		b.draw(&s)
	}
	for _, a := range d.arrows {
		if err := a.draw(&s); err != nil {
			return "", err
		}
	}
	s.WriteString("</svg>\n")
	return s.String(), nil
}

func words(s *strings.Builder, class string, x, y float64, anchor, text string) {
	fmt.Fprintf(s, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}

func (b *band) draw(s *strings.Builder) {
	fmt.Fprintf(s, `<rect class="band" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="8"/>`+"\n", margin, b.y, width-2*margin, b.h)
	for k, line := range b.lines {
		words(s, "head", margin+inner, b.y+inner+lineStep*float64(k+1)-1, "start", line)
	}
	for _, x := range b.boxes {
		if x.title == "" {
			continue
		}
		fmt.Fprintf(s, `<rect class="box" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`+"\n", x.x, x.y, x.w, x.h)
		words(s, "name", x.x+x.w/2, x.y+20, "middle", x.title)
		for k, line := range x.lines {
			words(s, "text", x.x+x.w/2, x.y+boxHead+lineStep*float64(k+1)-3, "middle", line)
		}
	}
}

func (a arrow) draw(s *strings.Builder) error {
	x, from, to, err := a.route()
	if err != nil {
		return err
	}
	fmt.Fprintf(s, `<line class="arrow" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" marker-end="url(#tip)"/>`+"\n", x, from, x, to)
	if a.label != "" {
		words(s, "label", x+beside, from+inner+gap/2+4, "start", a.label)
	}
	return nil
}
