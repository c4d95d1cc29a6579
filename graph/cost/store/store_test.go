package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/cost/store"
)

const topology = "0123456789abcdef"

func measured(t *testing.T, rate float64) *cost.Measures {
	t.Helper()
	m := cost.NewMeasures(topology)
	if err := m.Set("a", "b", cost.Measured{Rate: rate}); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "not", "there")
	for _, w := range []store.Where{{Folder: folder}, {File: filepath.Join(t.TempDir(), "costs.json")}} {
		if found, err := w.Read(topology); found != nil || (err == nil) != (w.File == "") {
			t.Errorf("%+v: %v, %v before anything is there", w, found, err)
		}
		if w.Any() != (w.File != "") {
			t.Errorf("%+v: any is %v", w, w.Any())
		}
		name, err := w.Write(measured(t, 7))
		if err != nil || name != w.Path(topology) || !w.Any() {
			t.Fatal(name, err)
		}
		found, err := w.Read(topology)
		if v, ok := found.Of("a", "b"); err != nil || !ok || v.Rate != 7 {
			t.Errorf("%+v: %+v, %v", w, v, err)
		}
	}
	if found, err := (store.Where{Folder: folder}).Read("another"); found != nil || err != nil {
		t.Error(found, err)
	}
	var nowhere store.Where
	if _, err := nowhere.Write(measured(t, 7)); err == nil || nowhere.Any() {
		t.Error("measures were kept nowhere")
	}
}

// A file that cannot be used is an error that names it and the remedy.
func TestBadFiles(t *testing.T) {
	folder := t.TempDir()
	w := store.Where{File: filepath.Join(folder, "costs.json")}
	for _, text := range []string{"", "[1]", `{"version": 9}`, `{"version": 2, "topology": "of another machine"}`} {
		if err := os.WriteFile(w.File, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := w.Read(topology)
		if err == nil || !strings.Contains(err.Error(), w.File) || !strings.Contains(err.Error(), "hccl topo probe") {
			t.Errorf("%q: %v", text, err)
		}
	}
	pipe := filepath.Join(folder, "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Skip("no pipes in this folder: ", err)
	}
	if _, err := (store.Where{File: pipe}).Read(topology); err == nil {
		t.Error("a pipe was read")
	}
	if _, err := (store.Where{File: pipe}).Write(measured(t, 7)); err == nil {
		t.Error("a pipe was written to")
	}
}

// Of several writers one stays, whole, and nothing else is left in the folder.
func TestWritersAtOnce(t *testing.T) {
	w := store.Where{Folder: t.TempDir()}
	var wg sync.WaitGroup
	for k := range 8 {
		m := measured(t, float64(k+1))
		wg.Go(func() {
			for range 20 {
				if _, err := w.Write(m); err != nil {
					t.Error(err)
				}
				if found, err := w.Read(topology); err != nil || found == nil {
					t.Error(found, err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := os.ReadDir(w.Folder); err != nil || len(all) != 1 {
		t.Error(fmt.Sprint(all), err)
	}
}
