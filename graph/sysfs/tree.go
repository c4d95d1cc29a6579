package sysfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const mostText = 64 << 10 // bytes that are read of a file; those of /sys have 4 KiB, /proc/cpuinfo of large machines far more

// tree reads single files. What it has read it tells to seen, for a recording.
type tree struct {
	fsys fs.FS
	seen func(entry)
}

// entry is something that was read: a file with its text, a link with its target, or what could not be read and why.
type entry struct {
	path   string
	text   string
	link   bool
	failed bool
}

// text is what a file says, without blanks at its end. A file that is not there says nothing, and no more does one that cannot be
// read: drivers refuse to tell what they do not know.
func (t *tree) text(name string) (string, bool) {
	return t.read(name, func(text string) string { return text })
}

// lines are those lines of a file's beginning, up to the first empty one, that start with one of the words.
func (t *tree) lines(name string, words ...string) (string, bool) {
	return t.read(name, func(text string) string {
		var kept strings.Builder
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "" && kept.Len() > 0 {
				break
			}
			if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(line, w) }) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	})
}

func (t *tree) read(name string, part func(string) string) (string, bool) {
	text, err := t.file(name)
	text = strings.TrimRight(part(text), " \t\n\x00")
	switch {
	case err == nil:
		t.tell(entry{path: name, text: text})
	case !errors.Is(err, fs.ErrNotExist):
		t.tell(entry{path: name, text: cause(err), failed: true})
	}
	return text, err == nil
}

func (t *tree) file(name string) (string, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostText))
	return string(b), err
}

// number is a decimal number that a file holds.
func (t *tree) number(name string) (int, bool) {
	text, _ := t.text(name)
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// hex is a number like 0x10de that a file holds.
func (t *tree) hex(name string) (int, bool) {
	text, _ := t.text(name)
	digits, marked := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 31)
	return int(n), marked && err == nil
}

// target is where a link leads, as a path from the root; "" if it is no link, or leads out of the tree.
func (t *tree) target(name string) string {
	to, err := fs.ReadLink(t.fsys, name)
	if err != nil {
		return ""
	}
	t.tell(entry{path: name, text: to, link: true})
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(name), to)
	}
	to = strings.TrimPrefix(path.Clean(to), "/")
	if !fs.ValidPath(to) {
		return ""
	}
	return to
}

// names are what a folder holds, numbers in them in the order of their values: mlx5_2 comes before mlx5_10.
func (t *tree) names(folder string) ([]string, error) {
	entries, err := fs.ReadDir(t.fsys, folder)
	names := make([]string, 0, len(entries))
	for _, e := range entries { // what was listed before an error counts
		names = append(names, e.Name())
	}
	slices.SortFunc(names, natural)
	return names, err
}

func (t *tree) tell(e entry) {
	if t.seen != nil {
		t.seen(e)
	}
}

func cause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// natural orders names by their letters, and by the values of the numbers in them.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x != "" && y != "" {
			if m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0"); len(m) != len(n) {
				return len(m) - len(n)
			} else if c := strings.Compare(m, n); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}
