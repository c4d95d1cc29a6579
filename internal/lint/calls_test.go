package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// ban forbids names of a package. where tells the files that it is about.
type ban struct {
	pkg, names string // names: a regular expression for the whole name
	where      func(*source) bool
	fix        string
}

var bans = []ban{
	{"os", "Exit", inCore, "return an error: the process is the host's"},
	{"log", "(Fatal|Panic|Print).*", inCore, "return an error, or use internal/log"},
	{"os/signal", ".*", inCore, "signals are the host's; Go's own handlers are kept out as well"},
	{"fmt", "Print(f|ln)?", inCore, "stdout is the host's: use internal/log"},
	{"os", "Std(out|err|in)", inCore, "stdout and stderr are the host's: use internal/log"},
	{"os", "(Getenv|LookupEnv|Environ|ExpandEnv|Setenv|Unsetenv)", inCore,
		"read settings through internal/params: Go sees the environment of the program's start only"},
	{"net", "(Dial.*|Listen.*|FileConn|FileListener|FilePacketConn|(TCP|UDP|Unix|IP)(Conn|Listener))", inCore,
		"net.Conn's Write raises SIGPIPE: raw sockets and unix.SendmsgN with MSG_NOSIGNAL"},
	{"golang.org/x/sys/unix", "(Write|Writev|Send|Splice|Vmsplice|Sendfile)", writesToPeers,
		"on a socket or pipe it raises SIGPIPE: unix.SendmsgN with MSG_NOSIGNAL"},
	{"syscall", "(Write|Exec|ForkExec)", inCore, "use golang.org/x/sys/unix, and no SIGPIPE"},
	{"os/exec", ".*", inCore, "the core starts no programs in somebody else's process"},
	{"runtime", "GOMAXPROCS", neverSets, "it stops the world: set once, when the core is loaded (capi)"},
	{"runtime/debug", "Set.*", belowCapi, "set once, when the core is loaded (capi)"},
	{"time", "Sleep", neverSleeps,
		"wait for a condition with a deadline, or use testing/synctest: a sleep is either too short or too long"},
}

func belowCapi(s *source) bool     { return inCore(s) && !s.in("capi") }
func neverSets(s *source) bool     { return belowCapi(s) && !s.in(".") } // the package for Go programs asks for it
func writesToPeers(s *source) bool { return inCore(s) && !wordWriters[s.path] }
func neverSleeps(s *source) bool   { return isGo(s) && (s.test() || s.in("proto", "graph", "device")) }

// wordWriters write to descriptors of their own that are neither pipe nor socket, or have another guard against SIGPIPE.
var wordWriters = map[string]bool{
	"internal/log/output.go": true, // asks what stderr is, and blocks the signal for a pipe
	"core/boot/inbox.go":     true, // an eventfd
	"net/tcp/sleep.go":       true, // an eventfd
	"shm/exchange.go":        true, // an eventfd
}

func TestForbiddenCalls(t *testing.T) {
	for _, b := range bans {
		name := regexp.MustCompile("^(" + b.names + ")$")
		for _, s := range sources(t, isGo) {
			if !b.where(s) {
				continue
			}
			for _, at := range uses(s, b.pkg, name) {
				t.Errorf("%s:%d uses %s.%s: %s", s.path, s.line(at.Pos()), b.pkg, at.Sel.Name, b.fix)
			}
		}
	}
}

// uses finds the places where the file names something of the package that it imports under any name.
func uses(s *source, pkg string, name *regexp.Regexp) (found []*ast.SelectorExpr) {
	local := ""
	for _, im := range s.ast.Imports {
		if strings.Trim(im.Path.Value, `"`) == pkg {
			local = pkg[strings.LastIndex(pkg, "/")+1:]
			if im.Name != nil {
				local = im.Name.Name
			}
		}
	}
	if local == "" {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && name.MatchString(sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
}

// TestBanSeesWhatItForbids keeps the search itself honest: this file uses regexp.MustCompile.
func TestBanSeesWhatItForbids(t *testing.T) {
	for _, s := range sources(t, func(s *source) bool { return s.path == "internal/lint/calls_test.go" }) {
		if len(uses(s, "regexp", regexp.MustCompile("^MustCompile$"))) == 0 {
			t.Error("a use of regexp.MustCompile is not found: the rules above are blind")
		}
	}
}

func TestNoWorkAtLoad(t *testing.T) {
	for _, s := range sources(t, inCore) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: func init: nothing starts before the first call that needs it; use sync.Once", s.path, s.line(f.Pos()))
			}
		}
	}
}

// What C code that runs in other people's processes must not contain.
var bansC = []struct{ pattern, fix string }{
	{`\bprintf\s*\(|\bputs\s*\(|\bputchar\s*\(|\bstdout\b`, "stdout is the host's: write to stderr only where NCCL_DEBUG asks for it"},
	{`\b(memfd_create|getrandom|gettid|pidfd_open|close_range|reallocarray)\s*\(`, "newer than glibc 2.17: use syscall()"},
	{`\b__thread\b|\b_Thread_local\b`, "static TLS is scarce for a library that is loaded late: pthread_getspecific"},
	{`\b(exit|_exit|abort|signal|sigaction)\s*\(`, "process and signals are the host's: return an error"},
	{`\bwrite\s*\(`, "on a socket or pipe it raises SIGPIPE: send with MSG_NOSIGNAL"},
}

// mayC are the exceptions: file and word.
var mayC = map[string]bool{
	"capi/open.c sigaction":        true, // the hidden one that only reads
	"capi/shim/log.c write":        true, // with SIGPIPE blocked in its thread
	"capi/shim/meet_serve.c write": true, // an eventfd
}

var commentC = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(\\.|[^"\\\n])*"`)

func TestForbiddenInC(t *testing.T) {
	shared := func(s *source) bool {
		return isC(s) && s.in("capi", "core", "net", "shm", "device", "internal") && !strings.Contains(s.path, "testdata")
	}
	for _, s := range sources(t, shared) {
		code := commentC.ReplaceAllStringFunc(s.text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
		for _, b := range bansC {
			for _, at := range regexp.MustCompile(b.pattern).FindAllStringIndex(code, -1) {
				word := strings.Trim(code[at[0]:at[1]], " \t\n(")
				member := at[0] > 0 && strings.ContainsRune(".>", rune(code[at[0]-1])) // table->abort is not abort
				if !member && !mayC[s.path+" "+word] {
					t.Errorf("%s:%d: %s: %s", s.path, 1+strings.Count(code[:at[0]], "\n"), word, b.fix)
				}
			}
		}
	}
}
