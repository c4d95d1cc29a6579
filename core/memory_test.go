package core

import (
	"runtime"
	"testing"

	"hccl.dev/hccl/device"
)

// Each registration has a handle of its own, which ends once; what is no memory is refused.
func TestRegistrations(t *testing.T) {
	w := newWorld(t, 1)
	c := w.comms[0]
	buf := make([]byte, 1<<16)
	p := device.BytesPtr(buf)
	seen := map[uintptr]bool{}
	for range 3 {
		h, err := c.Register(p, uint64(len(buf)))
		if err != nil || h == 0 || seen[h] {
			t.Fatalf("handle %#x: %v", h, err)
		}
		seen[h] = true
	}
	for h := range seen {
		if err := c.Deregister(h); err != nil {
			t.Error(err)
		}
		wantError(t, c.Deregister(h), InvalidArgument, "is not registered")
	}
	_, err := c.Register(0, 8)
	wantError(t, err, InvalidArgument, "must not be 0")
	_, err = c.Register(p, 0)
	wantError(t, err, InvalidArgument, "must not be 0")
	_, err = c.Register(device.Ptr(1<<46), 4096)
	wantError(t, err, InvalidArgument, "not mapped")
	if _, err := c.Register(p, 100); err != nil { // is forgotten with the communicator
		t.Error(err)
	}
	w.destroy()
	runtime.KeepAlive(buf)
}

func TestMemAlloc(t *testing.T) {
	p, err := MemAlloc(10000)
	if err != nil || p == 0 {
		t.Fatal(p, err)
	}
	b := device.Bytes(p, 10000)
	b[0], b[9999] = 1, 2
	if err := MemFree(p); err != nil {
		t.Error(err)
	}
	wantError(t, MemFree(p), InvalidArgument, "ncclMemFree")
	if p, err := MemAlloc(0); p != 0 || err != nil {
		t.Errorf("no bytes: %#x, %v", p, err)
	}
	if err := MemFree(0); err != nil {
		t.Error(err)
	}
}
