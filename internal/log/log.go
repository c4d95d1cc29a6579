// Package log writes what the library has to say about itself, in the way that users of NCCL know: NCCL_DEBUG chooses the level
// (VERSION, WARN, INFO, TRACE), NCCL_DEBUG_SUBSYS the subjects of INFO and TRACE, NCCL_DEBUG_FILE a file in place of stderr.
// Without NCCL_DEBUG nothing is printed, ever. Nothing goes to stdout, which belongs to the host program.
//
// A line is "[time] host:pid:tid [rank] HCCL INFO text", the time by default on warnings only, and leaves in one write, so that lines
// of ranks which share a terminal or a file do not mix. The text is lower case, names numbers by words ("device 3") and, for a
// warning, says who, where and what to do.
//
// It is not a place for errors: those are returned, and the layer that knew one first logs it. It reads no environment: package
// params does, and calls Configure. Every package of the core may call it; the shim, which has no Go, has its own few lines of C.
//
// A line that is off costs one atomic load. Arguments are still evaluated, so code that runs per operation asks On first.
package log

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Level is how much is said.
type Level uint32

// The levels, each containing those before it.
const (
	LevelNone Level = iota
	LevelVersion
	LevelWarn
	LevelInfo
	LevelTrace
)

var levelNames = [...]string{"NONE", "VERSION", "WARN", "INFO", "TRACE"}

func (l Level) String() string { return levelNames[l] }

// state holds the level in its low byte and the subjects above it: one load answers "is this line wanted?".
var state atomic.Uint64

var once sync.Map // keys of lines that are said only once in the life of the process

// On reports whether a line of this level and subject is wanted. Warnings have no subject.
func On(l Level, s Subject) bool {
	v := state.Load()
	return Level(v&0xff) >= l && (l <= LevelWarn || Subject(v>>8)&s != 0)
}

// Logger writes lines that name the rank they speak of. The zero Logger names none.
type Logger struct{ tag string }

// Rank returns a Logger whose lines carry the rank.
func Rank(rank int) Logger { return Logger{"[" + strconv.Itoa(rank) + "] "} }

// Warn says that something is wrong and what to do about it.
func (l Logger) Warn(format string, args ...any) {
	if On(LevelWarn, 0) {
		l.line(LevelWarn, format, args)
	}
}

// Info says what was found and chosen, and why.
func (l Logger) Info(s Subject, format string, args ...any) {
	if On(LevelInfo, s) {
		l.line(LevelInfo, format, args)
	}
}

// Trace says what is being done, call by call.
func (l Logger) Trace(s Subject, format string, args ...any) {
	if On(LevelTrace, s) {
		l.line(LevelTrace, format, args)
	}
}

// WarnOnce is Warn, for the first of all calls with this key whose line is wanted.
func (l Logger) WarnOnce(key, format string, args ...any) {
	if On(LevelWarn, 0) && first(key) {
		l.line(LevelWarn, format, args)
	}
}

// InfoOnce is Info, for the first of all calls with this key whose line is wanted.
func (l Logger) InfoOnce(s Subject, key, format string, args ...any) {
	if On(LevelInfo, s) && first(key) {
		l.line(LevelInfo, format, args)
	}
}

// Warn, Info, Trace and their Once forms without a rank.
func Warn(format string, args ...any)             { Logger{}.Warn(format, args...) }
func Info(s Subject, format string, args ...any)  { Logger{}.Info(s, format, args...) }
func Trace(s Subject, format string, args ...any) { Logger{}.Trace(s, format, args...) }
func WarnOnce(key, format string, args ...any)    { Logger{}.WarnOnce(key, format, args...) }
func InfoOnce(s Subject, key, format string, args ...any) {
	Logger{}.InfoOnce(s, key, format, args...)
}

// Leave takes a line with this key for said: another process says it for this one.
func Leave(key string) { first(key) }

func first(key string) bool {
	_, said := once.LoadOrStore(key, true)
	return !said
}

func (l Logger) line(level Level, format string, args []any) {
	b := append(make([]byte, 0, 256), stamped(level)...)
	b = append(b, host()...)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(os.Getpid()), 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(unix.Gettid()), 10)
	b = append(b, ' ')
	b = append(b, l.tag...)
	b = append(b, "HCCL "...)
	b = append(b, levelNames[level]...)
	b = append(b, ' ')
	b = appendText(b, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	out.write(append(b, '\n'))
}

// appendText adds a text that may hold what a peer sent: it must not move a terminal's cursor, nor begin a line as the log does. The
// further lines of a long text, such as a stack, are set in.
func appendText(b []byte, text string) []byte {
	for k := range len(text) {
		switch c := text[k]; {
		case c == '\n':
			b = append(b, "\n    "...)
		case c == '\t':
			b = append(b, ' ')
		case c < ' ' || c == 0x7f:
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return b
}

// host is the name of this machine as uname gives it, "localhost" where there is none.
var host = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
})
