// Package params is the library's settings: one table of knobs, each with its name, default, range and manual text, and an
// immutable snapshot of their values.
//
// Settings come from the environment, then from the user's and the system's settings file, in NCCL's order and form (source.h has
// the rule, in C, because the shim answers some questions without Go and must know the same). The environment is read through C's
// getenv: a Go core that is loaded late sees with os.Getenv only what was there when the program started, and a value that Python
// put into os.environ before its first call would be lost. Settings are read at first use and again whenever a communicator is
// made; a communicator keeps the snapshot that it was made with.
//
// A value that cannot be used is reported once, with the name, the value and what is accepted, and the default stays: a typing
// mistake must not stop a job, nor pass unseen (NCCL_DEBUG itself counts as WARN then, or nobody would hear of it). For the same
// reason names that begin like settings and are none are reported, with the nearest that is one. Names of NCCL's keep NCCL's
// meaning; the library's own begin with HCCL_. All names of NCCL's are known: those that act stand in table.go, the others in
// foreign.go with the reason why they do not.
//
// The same table is written for the C shim (gen writes capi/shim/params_table.h), and is the source of the tool's and the manual's
// lists. Nothing else in the core reads the environment; a test in internal/lint sees to it.
package params

import (
	"cmp"
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
	File
	Environment
)

func (s Source) String() string { return [...]string{"default", "file", "environment"}[s] }

// Setting is one knob's state in a snapshot, for those who list it.
type Setting struct {
	Knob   *Knob
	Value  string // the text that is in effect
	Source Source
	Place  string // for people: "environment", or file:line; "" for a default
	Bad    string // a text that was refused, if any; Place is its
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
	v := read(find)
	setUpLog(v)
	report(v, latest.Swap(v))
	return v
}

// Look reads all settings without setting up the log: for tools that list them.
func Look() *Values { return read(find) }

// Current returns the snapshot that was loaded last.
func Current() *Values {
	if v := latest.Load(); v != nil {
		return v
	}
	return Load()
}

func setUpLog(v *Values) {
	level, _ := log.ParseLevel(v.Debug) // both texts have passed the same parsers
	subjects, _ := log.ParseSubjects(v.DebugSubsys)
	var stamped []log.Level
	for l := log.LevelVersion; l <= log.LevelTrace; l++ {
		if stampWanted(v.DebugStampLevels, l.String()) {
			stamped = append(stamped, l)
		}
	}
	format := v.DebugStampFormat
	log.Stamp(func() string { return stamp(format) }, stamped...)
	log.Configure(level, subjects, v.DebugFile)
}

// read makes a snapshot from what lookup has.
func read(lookup func(name string) (found, bool)) *Values {
	v := &Values{settings: make([]Setting, len(table))}
	for k := range table {
		v.settings[k] = table[k].read(v, lookup)
	}
	return v
}

func (knob *Knob) read(v *Values, lookup func(name string) (found, bool)) Setting {
	s := Setting{Knob: knob, Value: knob.Default}
	if f, ok := lookup(knob.Name); ok && (f.text != "" || knob.emptyCounts) { // empty is how a shell script unsets a variable
		s.Place = f.place()
		err := knob.set(v, f.text)
		if err == nil {
			s.Value, s.Source = f.text, f.source()
			return s
		}
		s.Bad, s.Why = f.text, err.Error()
		s.Value = cmp.Or(knob.instead, knob.Default)
	}
	if err := knob.set(v, s.Value); err != nil {
		panic("params: default of " + knob.Name + ": " + err.Error()) // the table's own mistake, found by its test
	}
	return s
}

// Settings lists the knobs that act with their values, in the table's order. The slice belongs to the snapshot: read only.
func (v *Values) Settings() []Setting { return v.settings }

// Place says for people where the value of a knob that acts comes from: "environment", file:line, or "default".
func (v *Values) Place(name string) string {
	for _, s := range v.settings {
		if s.Knob.Name == name && s.Source != Default {
			return s.Place
		}
	}
	return Default.String()
}

// All lists every name that is known, with what the environment and the files say of it: those that act, then the others.
func (v *Values) All() []Setting {
	all := append([]Setting(nil), v.settings...)
	for k := range foreign() {
		knob := &foreign()[k]
		s := Setting{Knob: knob}
		if f, ok := find(knob.Name); ok {
			s.Value, s.Source, s.Place = f.text, f.source(), f.place()
		}
		all = append(all, s)
	}
	return all
}

// Knobs lists the table: the knobs that act, then the names that do not. Read only.
func Knobs() []Knob { return append(append([]Knob(nil), table...), foreign()...) }
