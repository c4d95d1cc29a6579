package sysfs_test

import (
	"testing"
	"testing/fstest"

	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/internal/cpuset"
)

func TestStanding(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	two := fstest.MapFS{
		"sys/devices/system/node/node0/cpulist": file("0-3,8-11"), "sys/devices/system/node/node1/cpulist": file("4-7,12-15"),
		"sys/devices/system/cpu/cpu4/cache/index0/shared_cpu_list": file("4"),
		"sys/devices/system/cpu/cpu4/cache/index3/shared_cpu_list": file("4-5,12-13"),
		"sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list": file("0-1"),
		"sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list": file("broken"),
	}
	for _, c := range []struct {
		name        string
		sys         fstest.MapFS
		mine        string
		numa, cache int
	}{
		{"bound to one core", two, "4", 1, 4},
		{"bound to a cache", two, "4-5,12", 1, 4},
		{"to a NUMA node", two, "0-3,8-11", 0, sysfs.Unknown},
		{"to nothing", two, "0-15", sysfs.Unknown, sysfs.Unknown},
		{"to a processor whose cache cannot be read", two, "2", 0, sysfs.Unknown},
		{"a kernel that tells nothing", fstest.MapFS{}, "0", sysfs.Unknown, sysfs.Unknown},
		{"no processor", two, "", sysfs.Unknown, sysfs.Unknown},
	} {
		mine := cpuset.Set{}
		if c.mine != "" {
			var err error
			if mine, err = cpuset.Parse(c.mine); err != nil {
				t.Fatal(err)
			}
		}
		if numa, cache := sysfs.Standing(c.sys, mine); numa != c.numa || cache != c.cache {
			t.Errorf("%s: node %d, cache %d; want %d, %d", c.name, numa, cache, c.numa, c.cache)
		}
	}
}
