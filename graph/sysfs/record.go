package sysfs

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Record writes down everything that Read looks at, so that the machine can be read elsewhere: in a test, or by whoever is asked why
// a machine is not understood. Nothing else of the machine is written.
//
//	sys/class/net/                     the folder of the lines that follow
//	eth0 -> ../../devices/.../net/eth0 a link
//	sys/devices/.../net/eth0/
//	operstate: up                      a file of one line
//	speed! invalid argument            a file that cannot be read
//	proc/
//	cpuinfo:                           a file of several lines, each behind a tab
//	<TAB>processor	: 0
//
// Lines that begin with # are for people.
func Record(out io.Writer, fsys fs.FS, goarch string) error {
	seen := map[string]entry{}
	r := newReader(fsys)
	r.seen = func(e entry) { seen[e.path] = e }
	r.read(goarch)
	w := bufio.NewWriter(out)
	folder := ""
	for _, e := range inFolders(seen) {
		if in := path.Dir(e.path); in != folder {
			folder = in
			fmt.Fprintf(w, "%s/\n", folder)
		}
		write(w, e)
	}
	return w.Flush() // a writer keeps its first error
}

// inFolders orders what was seen by folder, then by name.
func inFolders(seen map[string]entry) (all []entry) {
	for _, e := range seen {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int {
		if c := natural(path.Dir(a.path), path.Dir(b.path)); c != 0 {
			return c
		}
		return natural(a.path, b.path)
	})
	return all
}

func write(w io.Writer, e entry) {
	name := path.Base(e.path)
	switch {
	case e.link:
		fmt.Fprintf(w, "%s -> %s\n", name, e.text)
	case e.failed:
		fmt.Fprintf(w, "%s! %s\n", name, e.text)
	case strings.Contains(e.text, "\n"):
		fmt.Fprintf(w, "%s:\n", name)
		for line := range strings.Lines(e.text) {
			fmt.Fprintf(w, "\t%s\n", strings.TrimRight(line, "\n"))
		}
	default:
		fmt.Fprintf(w, "%s: %s\n", name, e.text)
	}
}
