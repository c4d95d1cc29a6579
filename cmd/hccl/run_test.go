package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRunTellsRanks(t *testing.T) {
	out, text, status := hccl(t, "run", "-n", "3", "--", "sh", "-c",
		"echo $RANK $LOCAL_RANK of $WORLD_SIZE $LOCAL_WORLD_SIZE at $MASTER_ADDR; test $MASTER_PORT -gt 0; printf half; printf err >&2")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	for stream, want := range map[string]string{out: "0 0 of 3 3 at 127.0.0.1|half|1 1 of 3 3 at 127.0.0.1|half|2 2 of 3 3 at 127.0.0.1|half",
		text: "err|err|err"} {
		lines := strings.Split(strings.TrimSpace(stream), "\n")
		slices.SortStableFunc(lines, func(a, b string) int { return int(a[1]) - int(b[1]) })
		for k, line := range lines {
			per := len(lines) / 3
			if !strings.HasPrefix(line, "["+strconv.Itoa(k/max(per, 1))+"] ") {
				t.Errorf("line %d: %q", k, line)
			}
			lines[k] = line[4:]
		}
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestRunPassesStatusOn(t *testing.T) {
	for script, want := range map[string]int{
		"exit $((RANK*3))":                   3, // the others end well
		"test $RANK = 0 && exit 9; sleep 60": 9, // the others are asked to end
		"test $RANK = 0 && kill -KILL $$; trap '' TERM; sleep 60 & wait": 137, // the others do not want to
	} {
		_, text, status := hccl(t, "run", "-n", "2", "--grace", "0.1", "--", "sh", "-c", script)
		if status != want || !strings.Contains(text, "hccl: rank ") {
			t.Errorf("%s: status %d, want %d: %s", script, status, want, text)
		}
	}
}

// What a rank has started ends with it, also when the rank itself ends well.
func TestRunLeavesNobody(t *testing.T) {
	out, text, status := hccl(t, "run", "-n", "2", "--no-prefix", "--", "sh", "-c", "sleep 600 & echo $!")
	pids := strings.Fields(out)
	if status != 0 || len(pids) != 2 {
		t.Fatalf("status %d, %q %s", status, out, text)
	}
	for _, word := range pids {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil { // killed, though perhaps not yet waited for by its new parent
			ends := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, _ := unix.Poll(ends, 10_000); n != 1 {
				t.Errorf("process %d lives", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			_ = unix.Close(fd)
		}
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	script := "trap 'echo one' USR1; trap 'echo end; exit 5' TERM; echo up; while :; do sleep 0.05; done"
	c := exec.CommandContext(t.Context(), tool(t), "run", "-n", "2", "--", "sh", "-c", script)
	var text bytes.Buffer
	c.Stderr = &text
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	next := map[string]syscall.Signal{"up": syscall.SIGUSR1, "one": syscall.SIGTERM}
	said := map[string]int{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, word, _ := strings.Cut(lines.Text(), " ")
		if said[word]++; said[word] == 2 && next[word] != 0 {
			if err := c.Process.Signal(next[word]); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = c.Wait()
	if said["one"] != 2 || said["end"] != 2 || c.ProcessState.ExitCode() != 5 {
		t.Errorf("status %d, %v, %s", c.ProcessState.ExitCode(), said, &text)
	}
}

// Ranks that go on after a Ctrl-C are killed at the second.
func TestSecondInterruptKills(t *testing.T) {
	script := "trap 'echo no' INT; echo up; while :; do sleep 0.05; done"
	c := exec.CommandContext(t.Context(), tool(t), "run", "-n", "2", "--", "sh", "-c", script)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, word, _ := strings.Cut(lines.Text(), " ")
		if said[word]++; said[word] == 2 {
			_ = c.Process.Signal(syscall.SIGINT)
		}
	}
	_ = c.Wait()
	if said["no"] != 2 || c.ProcessState.ExitCode() != 137 {
		t.Errorf("status %d, %v", c.ProcessState.ExitCode(), said)
	}
}

// A script that is named like a command is told how it is started.
func TestRunNamesTheWayToScripts(t *testing.T) {
	tool(t) // builds it, from this folder
	t.Chdir(t.TempDir())
	if err := os.WriteFile("ranks.py", []byte("print()\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{"ranks.py": "write ./ranks.py, or its interpreter",
		"./ranks.py": "make it executable (chmod +x)"} {
		if _, text, status := hccl(t, "run", "--", program); status != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %q, want %q", program, status, text, want)
		}
	}
}

func TestRunBadCommands(t *testing.T) {
	for args, want := range map[string]string{"": "no command to run", "-n 0 -- true": "from 1 to 4096",
		"-n 2 -- /nowhere/at/all": "no such file",
		"-x -- true":              "no flag -x: see hccl run --help"} {
		_, text, status := hccl(t, append([]string{"run"}, strings.Fields(args)...)...)
		if status != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %q, want %q", args, status, text, want)
		}
	}
}
