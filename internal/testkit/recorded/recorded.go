// Package recorded gives tests a machine's /sys and /proc as they were written down by sysfs.Record (hccl topo record), which says
// what the form is. Only what the reader looked at is there. Tests may also write such a text by hand.
package recorded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

// refused marks the content of files that cannot be read; what follows is why.
const refused = "\x00!"

// Load reads a recording in a file.
func Load(t testing.TB, file string) fs.FS {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return fsys
}

// Parse reads a recording.
func Parse(text string) (fs.FS, error) {
	all := tree{fstest.MapFS{}}
	folder, file, n := "", "", 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		name, rest, kind := split(line)
		at := path.Join(folder, name)
		switch {
		case kind == '\t' && file != "":
			all.MapFS[file].Data = append(all.MapFS[file].Data, rest+"\n"...)
		case kind == '/':
			folder, file = name, ""
		case kind == '>':
			all.MapFS[at] = &fstest.MapFile{Data: []byte(rest), Mode: fs.ModeSymlink | 0o777}
		case kind == '!':
			all.MapFS[at] = &fstest.MapFile{Data: []byte(refused + rest), Mode: 0o444}
		case kind == ':' && rest == "":
			file = at
			all.MapFS[at] = &fstest.MapFile{Mode: 0o444}
		case kind == ':':
			all.MapFS[at] = &fstest.MapFile{Data: []byte(rest + "\n"), Mode: 0o444}
		case kind != '#':
			return nil, fmt.Errorf("line %d says nothing: %q", n, line)
		}
	}
	return all, nil
}

func split(line string) (name, rest string, kind byte) {
	if line == "" || line[0] == '#' {
		return "", "", '#'
	}
	if line[0] == '\t' {
		return "", line[1:], '\t'
	}
	if name, rest, ok := strings.Cut(line, " -> "); ok {
		return name, rest, '>'
	}
	if name, ok := strings.CutSuffix(line, "/"); ok {
		return name, "", '/'
	}
	if name, rest, ok := strings.Cut(line, "! "); ok && !strings.Contains(name, ":") {
		return name, rest, '!'
	}
	if name, rest, ok := strings.Cut(line, ":"); ok {
		return name, strings.TrimPrefix(rest, " "), ':'
	}
	return line, "", 0
}

// tree is a MapFS in which some files cannot be read, and links may lead in a circle, which MapFS itself follows for ever.
type tree struct{ fstest.MapFS }

func (t tree) Open(name string) (fs.File, error) {
	at, err := t.resolve(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if f := t.MapFS[at]; f != nil {
		if why, ok := strings.CutPrefix(string(f.Data), refused); ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New(why)}
		}
	}
	return t.MapFS.Open(at)
}

func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := t.resolve(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return t.MapFS.ReadDir(at)
}

const mostLinks = 40 // as Linux follows at most

// resolve follows the links in a path.
func (t tree) resolve(name string) (string, error) {
	done, links := "", 0
	for rest := name; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		done = path.Join(done, part)
		f := t.MapFS[done]
		if f == nil || f.Mode.Type() != fs.ModeSymlink {
			continue
		}
		if links++; links > mostLinks {
			return "", errors.New("too many levels of symbolic links")
		}
		target := path.Join(path.Dir(done), string(f.Data))
		if !fs.ValidPath(target) {
			return "", fs.ErrNotExist
		}
		done, rest = "", path.Join(target, rest)
	}
	return done, nil
}
