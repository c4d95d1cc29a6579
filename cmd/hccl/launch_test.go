package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The same command, under whatever starts the processes. What is not installed is skipped, and said.
func TestUnderLaunchers(t *testing.T) {
	lib := library(t)
	for _, l := range []struct {
		name string
		args []string
	}{
		{"mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe", "-np", "3"}},
		{"mpirun.mpich", []string{"-np", "3"}},
		{"torchrun", []string{"--no-python", "--nproc-per-node", "3"}},
		{"hccl", []string{"run", "--no-prefix", "-n", "3", "--"}},
	} {
		t.Run(l.name, func(t *testing.T) {
			path := tool(t)
			if l.name != "hccl" {
				var err error
				if path, err = exec.LookPath(l.name); err != nil {
					t.Skip("not installed: " + l.name)
				}
			}
			perf := []string{tool(t), "perf", "reduce_scatter", "--lib", lib, "-b", "1K", "-e", "64K", "-f", "8", "-t", "2"}
			out, err := exec.CommandContext(t.Context(), path, append(l.args, perf...)...).Output()
			if err != nil || len(deviceForm.FindAllString(string(out), -1)) != 6 || len(rowForm.FindAllString(string(out), -1)) != 3 ||
				strings.Count(string(out), "# Out of bounds values : 0 OK") != 1 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Wrong data make the exit status 1 there, too: each process knows what all have found.
func TestWrongDataUnderLauncher(t *testing.T) {
	idle := build(t, "idle.c")
	_, text, status := hccl(t, "run", "-n", "2", "--", tool(t), "perf", "all_gather", "--lib", idle, "-b", "1K", "-e", "1K")
	if status != 1 || strings.Count(text, "data were wrong") != 2 {
		t.Errorf("status %d, %s", status, text)
	}
}

func TestLaunchedProcessSaysWhoIsAbsent(t *testing.T) {
	c := exec.CommandContext(t.Context(), tool(t), "perf", "all_reduce", "--lib", build(t, "idle.c"))
	c.Env = append(os.Environ(), "RANK=0", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29411", "HCCL_INIT_TIMEOUT=0.2")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "processes [1 2] did not come to rank 0") {
		t.Errorf("%v, %s", err, out)
	}
}

// Many more threads than processors meet at each barrier; when all of them only yielded, 32 did not get through in a minute.
func TestManyThreadsOnFewProcessors(t *testing.T) {
	out, text, status := hccl(t, "perf", "all_reduce", "--lib", library(t), "--threads", "--ranks", "48", "-b", "1K", "-e", "1K", "-n", "1",
		"-w", "0")
	if status != 0 || len(rowForm.FindAllString(out, -1)) != 1 {
		t.Errorf("status %d\n%s%s", status, out, text)
	}
}

// A library without an operation says so, for that operation alone.
func TestOlderLibrary(t *testing.T) {
	old := build(t, "idle.c", "-DOLD")
	_, text, status := hccl(t, "perf", "alltoall_v", "--lib", old, "--threads")
	if status != 1 || !strings.Contains(text, "no function hcclAlltoAllV") {
		t.Errorf("status %d, %s", status, text)
	}
	if _, text, status := hccl(t, "perf", "all_reduce", "--lib", old, "--threads", "-c", "0"); status != 0 {
		t.Errorf("status %d, %s", status, text)
	}
}

// A measurement that does not end within -T ends the tool.
func TestTimeLimit(t *testing.T) {
	_, text, status := hccl(t, "perf", "all_reduce", "--lib", library(t), "--threads", "-T", "0.2", "-n", "1000000000", "-b", "8")
	if status != 1 || !strings.Contains(text, "all_reduce of 8 bytes did not end within 0.2 s") {
		t.Errorf("status %d, %s", status, text)
	}
}
