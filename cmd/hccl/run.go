package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const runText = `Starts a program several times on this machine, each with its rank in the environment, as torchrun does:

  RANK, LOCAL_RANK                0 to N-1
  WORLD_SIZE, LOCAL_WORLD_SIZE    N
  MASTER_ADDR, MASTER_PORT        where rank 0 may listen: 127.0.0.1 and a port that was free at the start

What the ranks write is passed on line by line, each line with its rank before it. Their standard input is empty. Signals that ask
to end, and SIGUSR1 and SIGUSR2, are passed on to all ranks and their children; so are Ctrl-Z and its end. A second Ctrl-C kills.

When a rank fails, the others have --grace seconds to end by themselves and say what they saw; then they are asked to end (SIGTERM)
and, 3 seconds later, killed. The exit status is that of the rank that failed first, or 128 and its signal, or 0.`

// runOptions are the flags of hccl run.
type runOptions struct {
	n      int
	grace  float64
	plain  bool
	master string
	port   int
}

// exitStatus ends the tool with the status of a rank; what there is to say has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func runCommand() *cobra.Command {
	o := &runOptions{grace: 3}
	cmd := &cobra.Command{
		Use: "run -n N [flags] -- COMMAND [ARGUMENT...]", Short: "starts a program as N ranks on this machine", Long: runText,
		Example: "  hccl run -n 4 -- python3 train.py\n  hccl run -n 2 -- hccl perf all_reduce",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no command to run: hccl run -n N -- COMMAND")
			}
			return o.run(args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false) // flags after the command are the command's
	f.VarP(ranged(&o.n, 1, 1, 4096), "nproc", "n", "number of ranks")
	f.Var(&duration{&o.grace, 0, 86400}, "grace", "time for the others to end by themselves when a rank has failed")
	f.BoolVar(&o.plain, "no-prefix", false, "pass lines on without the rank before them")
	f.StringVar(&o.master, "master-addr", "127.0.0.1", "MASTER_ADDR")
	f.Var(ranged(&o.port, 0, 0, 65535), "master-port", "MASTER_PORT; 0: a free one")
	return cmd
}

// gang is the ranks of one hccl run.
type gang struct {
	*runOptions
	ranks []*exec.Cmd
	alive []bool
	ended chan ending

	interrupted bool // by a first Ctrl-C
}

func (o *runOptions) run(args []string) error {
	if o.port == 0 {
		port, err := freePort()
		if err != nil {
			return err
		}
		o.port = port
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGTSTP, syscall.SIGCONT)
	defer signal.Stop(signals)
	g := &gang{runOptions: o, ended: make(chan ending, o.n)}
	out, err := newPipe(os.Stdout), newPipe(os.Stderr)
	for r := range o.n {
		if failed := g.start(r, args, out, err); failed != nil {
			g.signal(syscall.SIGKILL)
			return fmt.Errorf("rank %d cannot be started: %w%s", r, failed, howElse(args[0], failed))
		}
	}
	return g.await(signals)
}

// howElse says how a program is started whose file is there, but no command: most often it is a script.
func howElse(program string, failed error) string {
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		return ""
	}
	if errors.Is(failed, exec.ErrNotFound) {
		return "; there is a file of this name in this folder: write ./" + program + ", or its interpreter before it, as in -- python3 " + program
	}
	if errors.Is(failed, syscall.EACCES) {
		return "; make it executable (chmod +x), or write its interpreter before it, as in -- python3 " + program
	}
	return ""
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for MASTER_PORT: %w; name one with --master-port", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start runs one rank in a process group of its own, so that a signal reaches its children too, and none twice.
func (g *gang) start(r int, args []string, out, err *pipe) error {
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), g.variables(r)...)
	o, e := out.lines(g.prefix(r)), err.lines(g.prefix(r))
	c.Stdout, c.Stderr = o, e
	c.WaitDelay = time.Second // for output of children that outlive the rank
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if failed := c.Start(); failed != nil {
		return failed
	}
	g.ranks, g.alive = append(g.ranks, c), append(g.alive, true)
	go func() {
		failed := c.Wait()
		if errors.Is(failed, exec.ErrWaitDelay) {
			failed = nil // the rank itself ended well
		}
		o.end()
		e.end()
		g.ended <- ending{r, failed}
	}()
	return nil
}

func (g *gang) variables(r int) []string {
	rank, size := strconv.Itoa(r), strconv.Itoa(g.n)
	return []string{"RANK=" + rank, "LOCAL_RANK=" + rank, "WORLD_SIZE=" + size, "LOCAL_WORLD_SIZE=" + size,
		"MASTER_ADDR=" + g.master, "MASTER_PORT=" + strconv.Itoa(g.port)}
}

func (g *gang) prefix(r int) string {
	if g.plain {
		return ""
	}
	return fmt.Sprintf("[%*d] ", len(strconv.Itoa(g.n-1)), r)
}

// await returns when all ranks have ended. After a failure the steps towards the end follow each other: nothing, SIGTERM, SIGKILL.
func (g *gang) await(signals chan os.Signal) error {
	var result error
	var next <-chan time.Time
	sign := syscall.SIGTERM
	for left := g.n; left > 0; {
		select {
		case e := <-g.ended:
			left--
			g.alive[e.rank] = false
			_ = unix.Kill(-g.ranks[e.rank].Process.Pid, syscall.SIGKILL) // children that it left behind
			if e.err != nil && result == nil {
				result = e.status()
				next = time.After(time.Duration(g.grace * float64(time.Second)))
			}
		case s := <-signals:
			g.pass(s.(syscall.Signal))
		case <-next:
			g.signal(sign)
			sign, next = syscall.SIGKILL, time.After(grace)
		}
	}
	return result
}

// pass is what the tool does with a signal to itself. A second Ctrl-C means it: whoever still lives is killed.
func (g *gang) pass(s syscall.Signal) {
	switch {
	case s == syscall.SIGTSTP: // Ctrl-Z: the ranks, which are not in the terminal's group, stop with this process
		g.signal(syscall.SIGSTOP)
		_ = unix.Kill(os.Getpid(), syscall.SIGSTOP)
	case s == syscall.SIGINT && g.interrupted:
		g.signal(syscall.SIGKILL)
	default:
		g.interrupted = g.interrupted || s == syscall.SIGINT
		g.signal(s)
	}
}

// signal sends to the groups of ranks that have not been waited for: their numbers are still theirs.
func (g *gang) signal(s syscall.Signal) {
	for r, c := range g.ranks {
		if g.alive[r] {
			_ = unix.Kill(-c.Process.Pid, s)
		}
	}
}

// status says how the rank failed, and is what the tool ends with.
func (e ending) status() error {
	fmt.Fprintf(os.Stderr, "hccl: rank %d ended with %v\n", e.rank, e.err)
	var exit *exec.ExitError
	if !errors.As(e.err, &exit) {
		return exitStatus(1)
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitStatus(128 + int(w.Signal()))
	}
	return exitStatus(exit.ExitCode())
}
