// Package params is the library's settings: one table of knobs, each with its name, default, range and manual text, and an
// immutable snapshot of their values.
//
// Settings come from the environment, read through C's getenv: a Go core that is loaded late sees with os.Getenv only what was
// there when the program started, and a value that Python put into os.environ before its first call would be lost. They are read
// at first use and again whenever a communicator is made; a communicator keeps the snapshot that it was made with.
//
// A value that cannot be used is reported once, with the name, the value and what is accepted, and the default stays: a typing
// mistake must not stop a job, nor pass unseen. Names of NCCL's keep NCCL's meaning; the library's own begin with HCCL_.
//
// The same table is written for the C shim, which answers some questions without Go (gen writes capi/shim/params_table.h), and is
// the source of the tool's and the manual's lists. Nothing else in the core reads the environment; a test in internal/lint sees
// to it.
package params

import (
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/internal/log"
)

//go:generate go run hccl.dev/hccl/internal/params/gen

// Source says where a value came from.
type Source uint8

// The sources, the later before the earlier.
const (
	Default Source = iota
	Environment
)

func (s Source) String() string { return [...]string{"the default", "the environment"}[s] }

// Setting is one knob's state in a snapshot, for those who list it.
type Setting struct {
	Knob   *Knob
	Value  string // the text that is in effect
	Source Source
	Bad    string // a text that was refused, if any
	Why    string // and the reason
}

var (
	loading sync.Mutex // held while a snapshot is made, so that two are not reported in turns
	latest  atomic.Pointer[Values]
)

// Load reads all settings anew, sets up the log accordingly, reports what is bad or changed, and returns the snapshot.
func Load() *Values {
	loading.Lock()
	defer loading.Unlock()
	v := read(getenv)
	level, _ := log.ParseLevel(v.Debug) // both texts have passed the same parsers
	subjects, _ := log.ParseSubjects(v.DebugSubsys)
	log.Configure(level, subjects, v.DebugFile)
	report(v, latest.Swap(v))
	return v
}

// Current returns the snapshot that was loaded last.
func Current() *Values {
	if v := latest.Load(); v != nil {
		return v
	}
	return Load()
}

// read makes a snapshot from texts that lookup has.
func read(lookup func(name string) (string, bool)) *Values {
	v := &Values{settings: make([]Setting, len(table))}
	for k := range table {
		knob := &table[k]
		s := Setting{Knob: knob, Value: knob.Default}
		if text, ok := lookup(knob.Name); ok && text != "" { // empty is how a shell script unsets a variable
			if err := knob.set(v, text); err != nil {
				s.Bad, s.Why = text, err.Error()
			} else {
				s.Value, s.Source = text, Environment
			}
		}
		if s.Source == Default {
			if err := knob.set(v, knob.Default); err != nil {
				panic("params: default of " + knob.Name + ": " + err.Error()) // the table's own mistake, found by its test
			}
		}
		v.settings[k] = s
	}
	return v
}

// report says what was refused, and at INFO what was set since the snapshot before.
func report(v, before *Values) {
	for k, s := range v.settings {
		if s.Bad != "" {
			log.WarnOnce("bad "+s.Knob.Name+"="+s.Bad, "%s=%s is not used: %s; it stays at %q", s.Knob.Name, s.Bad, s.Why, s.Value)
		}
		if s.Source != Default && (before == nil || before.settings[k].Value != s.Value || !before.listed) {
			log.Info(log.Env, "%s is %s, set by %s", s.Knob.Name, s.Value, s.Source)
		}
	}
	v.listed = log.On(log.LevelInfo, log.Env)
}

// Settings lists all knobs with their values, in the table's order. The slice belongs to the snapshot: read only.
func (v *Values) Settings() []Setting { return v.settings }

// Knobs lists the table. Read only.
func Knobs() []Knob { return table }
