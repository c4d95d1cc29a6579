package core

import (
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
)

// registration is a user's buffer that was registered with a communicator. On host memory nothing needs to be done with it yet; it
// is counted and checked, so that a program's mistakes show here and not first on a machine with a NIC.
type registration struct {
	p    device.Ptr
	size uint64
}

// Register notes a buffer and returns its handle, which is never 0. Each registration has a handle of its own.
func (c *Comm) Register(p device.Ptr, size uint64) (uintptr, error) {
	switch {
	case p == 0 || size == 0:
		return 0, failf(InvalidArgument, "ncclCommRegister: buffer %#x of %d bytes: both must not be 0", p, size)
	case !host.ValidRange(p, size):
		return 0, failf(InvalidArgument, "ncclCommRegister: the %d bytes at %#x are not mapped memory of this process", size, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory == nil {
		c.memory = map[uintptr]registration{}
	}
	c.nextID++
	c.memory[c.nextID] = registration{p, size}
	return c.nextID, nil
}

// Deregister forgets a registration.
func (c *Comm) Deregister(handle uintptr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.memory[handle]; !ok {
		return failf(InvalidArgument, "ncclCommDeregister: handle %#x is not registered with this communicator", handle)
	}
	delete(c.memory, handle)
	return nil
}

// releaseMemory forgets what is still registered and says so.
func (c *Comm) releaseMemory() {
	c.mu.Lock()
	n := len(c.memory)
	c.memory = nil
	c.mu.Unlock()
	if n > 0 {
		c.log.Warn("communicator %s is gone with %d buffers still registered: call ncclCommDeregister before ncclCommDestroy", c.label(), n)
	}
}

// MemAlloc returns memory that other processes of the host can map.
func MemAlloc(size uint64) (device.Ptr, error) {
	if size == 0 {
		return 0, nil
	}
	place, err := host.Alloc(size)
	if err != nil {
		return 0, failf(SystemError, "ncclMemAlloc of %d bytes: %w", size, err)
	}
	return place.Base, nil
}

// MemFree gives memory of MemAlloc back.
func MemFree(p device.Ptr) error {
	if p == 0 {
		return nil
	}
	if err := host.Free(p); err != nil {
		return failf(InvalidArgument, "ncclMemFree: %w", err)
	}
	return nil
}
