package gpus_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"hccl.dev/hccl/graph/gpus"
	"hccl.dev/hccl/graph/gpus/gen/names"
	"hccl.dev/hccl/graph/topo"
)

const inside = "HCCL_TEST_NVML" // set in the process that finds the NVML of testdata

// A library by NVML's name is found and asked through the stubs, and functions that it does not have say so.
func TestStubsLeadToTheLibrary(t *testing.T) {
	if os.Getenv(inside) != "" {
		askLibrary(t)
		return
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	folder := t.TempDir()
	object := filepath.Join(folder, "libnvidia-ml.so.1")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", object, "testdata/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self := exec.Command(os.Args[0], "-test.run=^TestStubsLeadToTheLibrary$", "-test.v")
	self.Env = append(os.Environ(), inside+"=1", "LD_LIBRARY_PATH="+folder)
	if out, err := self.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func askLibrary(t *testing.T) {
	lib, err := gpus.Open()
	if err != nil {
		t.Fatal(err)
	}
	if text := gpus.Text(nvml.ERROR_INVALID_ARGUMENT); text != "that is invalid here (2)" {
		t.Errorf("text %q", text)
	}
	if _, ret := lib.SystemGetDriverVersion(); ret != nvml.ERROR_FUNCTION_NOT_FOUND {
		t.Errorf("a function that is not there returns %d", ret)
	}
	m, report := host(t)
	gpus.Add(m, lib, true, report)
	topo.Clean(m, report)
	var got []string
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		for _, l := range g.NVLinks {
			got = append(got, fmt.Sprintf("%s sm %d, %d to %s %s", d.BusID, g.SM, l.Count, l.Target, l.Class))
		}
	})
	want := "0000:18:00.0 sm 90, 6 to 0000:29:00.0 0x030200; 0000:29:00.0 sm 90, 6 to 0000:18:00.0 0x030200"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("%s, notes %v", text, report.Notes)
	}
	if ret := lib.Shutdown(); ret != nvml.SUCCESS {
		t.Errorf("it does not end: %d", ret)
	}
	again, err := gpus.Open()
	if err != nil {
		t.Fatalf("a second time: %v", err)
	}
	if n, ret := again.DeviceGetCount(); n != 2 || ret != nvml.SUCCESS {
		t.Errorf("a second time: %d GPUs, %d", n, ret)
	}
	again.Shutdown()
}

// A machine without NVIDIA's driver is told from one whose driver fails.
func TestAbsentLibrary(t *testing.T) {
	lib, err := gpus.Open()
	if err == nil {
		lib.Shutdown()
		t.Skip("this machine has NVML")
	}
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("this machine has NVIDIA's driver")
	}
	if !errors.Is(err, gpus.ErrAbsent) || !strings.Contains(err.Error(), "libnvidia-ml.so.1") {
		t.Errorf("%v", err)
	}
}

// A newer go-nvml may call functions that have no stub yet.
func TestNamesAreThoseOfGoNVML(t *testing.T) {
	want, err := names.Header()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("names.h")
	if err != nil || string(got) != want {
		t.Errorf("names.h is not what go-nvml calls (%v): run go generate ./graph/gpus", err)
	}
}
