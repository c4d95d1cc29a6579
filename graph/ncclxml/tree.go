// Package ncclxml reads and writes NCCL's XML: topologies (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), and the channels that a search found
// (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE; search.go). A topology:
//
//	<system version="1">
//	  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143" affinity="ffff">
//	    <pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16" ...>
//	      <pci busid="0000:1b:00.0" class="0x030200" ...>
//	        <gpu dev="0" sm="90" rank="0" gdr="1"> <nvlink target="..." count="18" tclass="0x068000"/> </gpu>
//	      </pci>
//	      <pci busid="0000:1a:00.0" class="0x020700" ...>
//	        <nic> <net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1" .../> </nic>
//	      </pci>
//	    </pci>
//	  </cpu>
//	</system>
//
// Reading goes from text to a tree of elements that know their lines (this file), and from there to a topo.Machine (read.go,
// device.go). A text that is no XML, or another kind of XML, is an error. What is wrong inside is a fault in the report, and only
// that part is left out: topologies are written by hand for virtual machines, and one slip must not cost the rest.
package ncclxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

const (
	mostDepth = 64       // of elements in each other; real trees have 10
	mostBytes = 64 << 20 // of a file
)

// Error says why a text is no topology.
type Error struct {
	Line         int
	What, Remedy string
}

func (e *Error) Error() string {
	return topo.Fault{Line: e.Line, What: e.What, Remedy: e.Remedy}.String()
}

// element is one element of the file.
type element struct {
	name     string
	line     int
	attrs    []xml.Attr
	children []*element
}

// attr is an attribute's text.
func (e *element) attr(name string) (text string, ok bool) {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

// parse makes the tree of a file with one root. One that is too long is not begun: each rank of a host reads it, when it is made.
func parse(r io.Reader) (*element, error) {
	if f, ok := r.(fs.File); ok {
		if info, err := f.Stat(); err == nil && info.Size() > mostBytes {
			return nil, errLong
		}
	}
	limited := &io.LimitedReader{R: r, N: mostBytes + 1}
	d := xml.NewDecoder(limited)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // all that counts is ASCII
	top := &element{}
	open := []*element{top}
	for {
		line, _ := d.InputPos()
		token, err := d.Token()
		if err == io.EOF {
			return onlyRoot(top)
		}
		if err != nil {
			return nil, damaged(err, limited.N <= 0)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(open) > mostDepth {
				return nil, &Error{line, fmt.Sprintf("elements are nested more than %d deep", mostDepth), "a topology has about 10 levels"}
			}
			e := &element{name: t.Name.Local, line: line, attrs: t.Copy().Attr}
			parent := open[len(open)-1]
			parent.children = append(parent.children, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

func onlyRoot(top *element) (*element, error) {
	const remedy = "a topology is one <system version=\"1\"> with all else in it"
	switch {
	case len(top.children) == 0:
		return nil, &Error{1, "the file has no element", remedy}
	case len(top.children) > 1:
		return nil, &Error{top.children[1].line, fmt.Sprintf("a second root element <%s>", shorten(top.children[1].name)), remedy}
	}
	return top.children[0], nil
}

var errLong = &Error{0, fmt.Sprintf("the file is longer than %d MiB", mostBytes>>20), "no topology is that long: give another file"}

// damaged says where the text ends to be XML.
func damaged(err error, tooLong bool) error {
	var syntax *xml.SyntaxError
	switch {
	case tooLong:
		return errLong
	case errors.As(err, &syntax) && strings.Contains(syntax.Msg, "unexpected EOF"):
		return &Error{syntax.Line, "the file ends inside an element", "it was cut off, or is still being written: make it anew"}
	case errors.As(err, &syntax):
		return &Error{syntax.Line, "this is not XML: " + syntax.Msg, "correct the text"}
	}
	return fmt.Errorf("cannot be read: %w", err)
}
