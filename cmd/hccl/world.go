package main

import (
	"fmt"
	"strconv"
	"strings"
)

// world is this process's place among those that a launcher started, as the environment tells it.
type world struct {
	by         string // the launcher
	rank, size int    // of processes
	local      int    // number on this host
	oneHost    bool
	master     string // host and port where rank 0 can be met; or
	pmi        int    // the descriptor of MPICH's process manager, -1 without; or
	job        string // what is the same in all processes of this job and in no other
	masterPort int
}

// A launcher is known by the variables that it sets. The first that fits counts: the innermost launcher, which torchrun within a
// Slurm step or mpirun within an allocation is.
type launcher struct {
	name              string
	rank, size, local string   // names of variables
	must              []string // others, without which it is not this one
	localSize, hosts  string   // whichever it sets
	job               []string
}

var launchers = []launcher{
	{name: "torchrun", rank: "RANK", size: "WORLD_SIZE", local: "LOCAL_RANK", localSize: "LOCAL_WORLD_SIZE",
		must: []string{"MASTER_ADDR", "MASTER_PORT"}, job: []string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
	{name: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", local: "OMPI_COMM_WORLD_LOCAL_RANK",
		localSize: "OMPI_COMM_WORLD_LOCAL_SIZE", job: []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
	{name: "MPICH", rank: "PMI_RANK", size: "PMI_SIZE", local: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS",
		job: []string{"PMI_JOBID", "PALS_APID"}},
	{name: "Slurm", rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS", local: "SLURM_LOCALID", hosts: "SLURM_STEP_NUM_NODES",
		must: []string{"SLURM_STEP_ID"}, job: []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}},
}

// detect is the world of this process, nil where nothing started it; or why the variables make no sense.
func detect(env func(string) string) (*world, error) {
	for _, l := range launchers {
		if env(l.rank) == "" || env(l.size) == "" || !allSet(env, l.must) || l.name == "Slurm" && ownShell(env) {
			continue
		}
		w, err := l.world(env)
		if err != nil {
			return nil, fmt.Errorf("%s started this process, but %w; --ranks N runs on this machine alone", l.name, err)
		}
		return w, nil
	}
	for _, name := range []string{"RANK", "WORLD_SIZE"} {
		if env(name) != "" {
			return nil, fmt.Errorf("%s is set, but not all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; set all, or use --ranks N", name)
		}
	}
	return nil, half(env)
}

// half is the error for one of the two variables of an MPI without the other: each process would take itself for a job of its own.
// Slurm's may stand alone in a batch script.
func half(env func(string) string) error {
	for _, l := range launchers {
		set, unset := l.rank, l.size
		if env(set) == "" {
			set, unset = unset, set
		}
		if len(l.must) == 0 && env(set) != "" && env(unset) == "" {
			return fmt.Errorf("%s is set, but not %s, and %s sets both: pass both on, or use --ranks N", set, unset, l.name)
		}
	}
	return nil
}

// ownShell tells Slurm's steps for a batch script or an interactive shell, whose numbers are the highest: nothing is launched there.
func ownShell(env func(string) string) bool {
	step, err := strconv.ParseUint(env("SLURM_STEP_ID"), 10, 64)
	return err == nil && step >= 0xfffffff0
}

func allSet(env func(string) string, names []string) bool {
	for _, name := range names {
		if env(name) == "" {
			return false
		}
	}
	return true
}

func (l *launcher) world(env func(string) string) (w *world, err error) {
	w = &world{by: l.name, pmi: -1}
	if w.size, err = count(env, l.size, 1, 1<<20); err != nil {
		return nil, err
	}
	if w.rank, err = count(env, l.rank, 0, w.size-1); err != nil {
		return nil, err
	}
	if env(l.local) != "" {
		if w.local, err = count(env, l.local, 0, 1<<20); err != nil {
			return nil, err
		}
	}
	w.oneHost = w.size == 1 || env(l.localSize) == env(l.size) || l.hosts != "" && env(l.hosts) == "1"
	for _, name := range l.job {
		if env(name) != "" {
			w.job += "/" + env(name)
		}
	}
	if w.job != "" {
		w.job = l.name + w.job
	}
	return w, w.findMeeting(env)
}

// findMeeting takes the way to rank 0 that the variables offer.
func (w *world) findMeeting(env func(string) string) (err error) {
	w.master = env("MASTER_ADDR")
	if w.master != "" && env("MASTER_PORT") != "" {
		w.masterPort, err = count(env, "MASTER_PORT", 1, 65535)
		return err
	}
	w.master = ""
	if hydra := env("MPI_LOCALNRANKS") != "" || w.job == ""; env("PMI_FD") != "" && w.by == "MPICH" && hydra { // others speak PMI-2 there
		w.pmi, err = count(env, "PMI_FD", 0, 1<<20)
		return err
	}
	if w.job == "" && w.size > 1 {
		return fmt.Errorf("no variable names the job; set MASTER_ADDR and MASTER_PORT to a host and a free port of rank 0")
	}
	return nil
}

func count(env func(string) string, name string, least, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(env(name)))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q, not a number from %d to %d", name, env(name), least, most)
	}
	return n, nil
}
