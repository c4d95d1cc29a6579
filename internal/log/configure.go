package log

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// What the version line says. ABI is the NCCL release whose binary interface the library has.
const (
	ABI     = "2.32.3"
	Release = "0.1.0"
)

// Subject is a set of things that INFO and TRACE lines are about.
type Subject uint32

// The subjects, by NCCL's names.
const (
	Init Subject = 1 << iota
	Coll
	P2P
	SHM
	Net
	Graph
	Tuning
	Env
	Alloc
	Call
	Proxy
	NVLS
	Bootstrap
	Reg
	Profile
	RAS
	All Subject = 1<<iota - 1
)

var subjectNames = []string{"INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL", "PROXY", "NVLS",
	"BOOTSTRAP", "REG", "PROFILE", "RAS"}

// ordinary is what INFO speaks of unless NCCL_DEBUG_SUBSYS says otherwise: all that is said at most once per communicator.
const ordinary = All &^ (Coll | Call)

// ParseLevel reads NCCL_DEBUG, in any case; empty is LevelNone.
func ParseLevel(s string) (Level, error) {
	if s == "" {
		return LevelNone, nil
	}
	for k, name := range levelNames {
		if strings.EqualFold(s, name) {
			return Level(k), nil
		}
	}
	if strings.EqualFold(s, "ABORT") { // a level of NCCL's between INFO and TRACE
		return LevelInfo, nil
	}
	return LevelNone, fmt.Errorf("want one of %s", strings.Join(levelNames[:], ", "))
}

// ParseSubjects reads NCCL_DEBUG_SUBSYS: names separated by commas, ALL, and a leading ^ for all but these.
func ParseSubjects(s string) (Subject, error) {
	if s == "" {
		return ordinary, nil
	}
	list, without := strings.CutPrefix(s, "^")
	var set Subject
	for _, word := range strings.Split(list, ",") {
		one, err := subject(strings.TrimSpace(word))
		if err != nil {
			return ordinary, err
		}
		set |= one
	}
	if without {
		return All &^ set, nil
	}
	return set, nil
}

func subject(word string) (Subject, error) {
	if strings.EqualFold(word, "ALL") {
		return All, nil
	}
	for k, name := range subjectNames {
		if strings.EqualFold(word, name) {
			return 1 << k, nil
		}
	}
	return 0, fmt.Errorf("unknown subject %q, want ALL or some of %s", word, strings.Join(subjectNames, ", "))
}

// stamps says which levels have the time in front of their lines, and writes it.
type stamps struct {
	on   uint32 // bit l: level l
	text func() string
}

var stamping atomic.Pointer[stamps]

// Stamp has text, the time in the form that is wanted, put in front of the lines of these levels from now on. It is called for each
// such line, on the thread that writes it.
func Stamp(text func() string, levels ...Level) {
	s := &stamps{text: text}
	for _, l := range levels {
		s.on |= 1 << l
	}
	stamping.Store(s)
}

func stamped(l Level) string {
	s := stamping.Load()
	if s == nil || s.on>>l&1 == 0 {
		return ""
	}
	return s.text()
}

// Configure sets level, subjects and file from now on; params.Load calls it. The first time that something may be said, it is the
// version. An empty file is stderr; in a file's name %h stands for the host and %p for the process.
func Configure(level Level, subjects Subject, file string) {
	failed := out.open(expand(file), level)
	state.Store(uint64(subjects)<<8 | uint64(level))
	if level >= LevelVersion && first("version") {
		out.write([]byte(stamped(LevelVersion) + "NCCL version " + ABI + " (HCCL " + Release + ")\n"))
	}
	if failed != nil {
		WarnOnce("file "+file, "NCCL_DEBUG_FILE %s cannot be opened for writing (%v): the log goes to stderr", file, failed)
	}
}

func expand(file string) string {
	return strings.NewReplacer("%h", host(), "%p", strconv.Itoa(os.Getpid()), "%%", "%").Replace(file)
}
