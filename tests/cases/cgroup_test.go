package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// C91 and C92: ranks in a cgroup that gives them half of a processor, and in one that gives them the first processor alone.
func TestCgroups(t *testing.T) {
	binary := build(t, "case_order")
	for _, c := range []struct {
		name       string
		controller string
		v1, v2     map[string]string // files and what is written to them
	}{
		{"C91 half of a processor", "cpu",
			map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}, map[string]string{"cpu.max": "50000 100000"}},
		{"C92 the first processor alone", "cpuset",
			map[string]string{"cpuset.mems": "0", "cpuset.cpus": "0"}, map[string]string{"cpuset.cpus": "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := cgroup(t, c.controller, c.v1, c.v2)
			for _, p := range both {
				t.Run(p.name, func(t *testing.T) {
					run(t, p.env, "sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, folder, binary, "split")
				})
			}
		})
	}
}

// cgroup makes a group with these limits, under either version of the interface, and returns its folder.
func cgroup(t *testing.T, controller string, v1, v2 map[string]string) string {
	t.Helper()
	name := fmt.Sprintf("hccl-test-%d", os.Getpid())
	why := ""
	for _, at := range []struct {
		parent string
		files  map[string]string
	}{{"/sys/fs/cgroup/" + controller, v1}, {"/sys/fs/cgroup", v2}} {
		folder := filepath.Join(at.parent, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			why = err.Error()
			continue
		}
		t.Cleanup(func() { _ = os.Remove(folder) }) // its processes have ended
		if err := limitTo(folder, at.files); err != nil {
			why = err.Error()
			continue
		}
		return folder
	}
	t.Skipf("no cgroup with the controller %s can be made here: %s", controller, why)
	return ""
}

func limitTo(folder string, files map[string]string) error {
	for _, name := range []string{"cpuset.mems", "cpuset.cpus", "cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max"} {
		if text, ok := files[name]; ok {
			f, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY, 0) // does not create: a plain folder is no cgroup
			if err != nil {
				return err
			}
			_, err = f.WriteString(text)
			if end := f.Close(); err == nil {
				err = end
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
