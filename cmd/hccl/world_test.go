package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func from(words string) func(string) string {
	values := map[string]string{}
	for _, word := range strings.Fields(words) {
		name, value, _ := strings.Cut(word, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

const (
	torchVars = " RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x "
	openVars  = " OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=77 "
	slurmVars = " SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=0 SLURM_STEP_NUM_NODES=2 SLURM_JOB_ID=5 "
)

func TestLaunchersAreKnown(t *testing.T) {
	torch := &world{by: "torchrun", rank: 3, size: 4, local: 1, master: "h", masterPort: 29500, pmi: -1, job: "torchrun/x"}
	for env, want := range map[string]*world{
		"":                                     nil,
		"MASTER_ADDR=h MASTER_PORT=29500":      nil,
		slurmVars + "SLURM_STEP_ID=4294967290": nil, // salloc's shell
		"PMI_RANK=1 PMI_SIZE=2 PMI_FD=9 PMI_JOBID=7.0": {by: "MPICH", rank: 1, size: 2, pmi: -1, job: "MPICH/7.0"}, // Slurm's PMI-2
		slurmVars:            nil, // a batch script, outside any step
		torchVars:            torch,
		torchVars + openVars: torch, // torchrun below mpirun
		torchVars + slurmVars + " SLURM_STEP_ID=0": torch,
		openVars: {by: "Open MPI", rank: 1, size: 2, local: 1, oneHost: true, pmi: -1, job: "Open MPI/77"},
		openVars + "MASTER_ADDR=h MASTER_PORT=1": {by: "Open MPI", rank: 1, size: 2, local: 1, oneHost: true, master: "h", masterPort: 1,
			pmi: -1, job: "Open MPI/77"},
		"PMI_RANK=0 PMI_SIZE=2 PMI_FD=9 MPI_LOCALNRANKS=2": {by: "MPICH", size: 2, oneHost: true, pmi: 9},
		slurmVars + " SLURM_STEP_ID=0":                     {by: "Slurm", size: 8, pmi: -1, job: "Slurm/5/0"},
	} {
		got, err := detect(from(env))
		if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(world{})) {
			t.Errorf("%s: %v\n%s", env, err, cmp.Diff(want, got, cmp.AllowUnexported(world{})))
		}
	}
}

func TestVariablesThatMakeNoSenseAreNamed(t *testing.T) {
	for env, want := range map[string]string{
		"RANK=1":                 "RANK is set, but not all",
		"WORLD_SIZE=1":           "WORLD_SIZE is set, but not all",
		"OMPI_COMM_WORLD_RANK=1": "OMPI_COMM_WORLD_RANK is set, but not OMPI_COMM_WORLD_SIZE, and Open MPI sets both",
		"PMI_SIZE=2":             "PMI_SIZE is set, but not PMI_RANK, and MPICH sets both",
		"RANK=4 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1":     `RANK is "4", not a number from 0 to 3`,
		"RANK=0 WORLD_SIZE=two MASTER_ADDR=h MASTER_PORT=1":   `WORLD_SIZE is "two"`,
		"RANK=0 WORLD_SIZE=1 MASTER_ADDR=h MASTER_PORT=70000": `MASTER_PORT is "70000", not a number from 1 to 65535`,
		"PMI_RANK=0 PMI_SIZE=2":                               "no variable names the job; set MASTER_ADDR",
		"PMI_RANK=0 PMI_SIZE=2 PMI_FD=x":                      `PMI_FD is "x"`,
	} {
		if w, err := detect(from(env)); w != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", env, w, err, want)
		}
	}
}
