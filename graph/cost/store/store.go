// Package store keeps measured costs in files: one for each topology, in the user's cache, or one that a setting names.
//
//	$XDG_CACHE_HOME/hccl/costs/0123456789abcdef.json     or below ~/.cache
//
// A file is written beside its name and then takes it, so that a reader finds the old one or the new one, and of several writers the
// last one stays. It is read by the library when a communicator is made, and by the tool, which writes it as well. Package cost knows
// what is in it.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/internal/regular"
	"hccl.dev/hccl/internal/replace"
)

// Where says where measures are kept. Neither: nowhere.
type Where struct {
	File   string // this one, whatever the topology
	Folder string // in here, by topology
}

// Kept is the file that a setting names, else the place in a user's cache; "" where there is none.
func Kept(file, cache string) Where {
	if file != "" || cache == "" {
		return Where{File: file}
	}
	return Where{Folder: filepath.Join(cache, "hccl", "costs")}
}

// mostBytes is more than the measures of any host take.
const mostBytes = 16 << 20

// Any reports whether there may be measures, at the cost of one look at the disk: without any, nobody needs to know the topology.
func (w Where) Any() bool {
	for _, name := range []string{w.File, w.Folder} {
		if name == "" {
			continue
		}
		_, err := os.Stat(name)
		return err == nil || name == w.File // a file that is named and is not there is told
	}
	return false
}

// Path is the file for a topology, "" without a place.
func (w Where) Path(topology string) string {
	switch {
	case w.File != "":
		return w.File
	case w.Folder != "":
		return filepath.Join(w.Folder, topology+".json")
	}
	return ""
}

// Read returns the measures of a topology, nil where there are none. An error is a file that cannot be used.
func (w Where) Read(topology string) (*cost.Measures, error) {
	name := w.Path(topology)
	if name == "" {
		return nil, nil
	}
	text, err := regular.Read(name, mostBytes)
	if errors.Is(err, fs.ErrNotExist) && w.File == "" {
		return nil, nil
	}
	var found *cost.Measures
	if err == nil {
		found, err = cost.Decode(text, topology)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not used: %w; hccl topo probe measures anew", name, err)
	}
	return found, nil
}

// Write keeps measures and returns the file's name.
func (w Where) Write(m *cost.Measures) (string, error) {
	name := w.Path(m.Topology)
	if name == "" {
		return "", errors.New("there is no place to keep measures: set HCCL_COST_FILE, or HOME")
	}
	text, err := m.Encode()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", err
	}
	if err := replace.File(name, text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return name, nil
}
