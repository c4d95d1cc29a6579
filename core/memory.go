package core

import (
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/net/registration"
)

// registrations is the registered buffers of all communicators. Until a transport drives a card they are only counted and watched, so
// that a program's mistakes show here and not first on a machine with such a card. Nothing is there before the first one.
var registrations struct {
	once  sync.Once
	cache atomic.Pointer[registration.Cache]
}

// registrationCache returns it. The settings of the first communicator that registers count.
func registrationCache(v *params.Values) *registration.Cache {
	registrations.once.Do(func() { registrations.cache.Store(registration.New(new(counter), v.RegCacheEntries)) })
	return registrations.cache.Load()
}

// counter stands for a card that reads and writes host memory.
type counter struct{ last atomic.Uint64 }

func (c *counter) Register(device.Ptr, uint64) (registration.Key, error) {
	return registration.Key{Local: c.last.Add(1)}, nil
}

func (c *counter) Deregister(registration.Key) error { return nil }

// Register notes a buffer and returns its handle, which is never 0. Each registration has a handle of its own.
func (c *Comm) Register(p device.Ptr, size uint64) (uintptr, error) {
	switch {
	case p == 0 || size == 0:
		return 0, failf(InvalidArgument, "ncclCommRegister: buffer %#x of %d bytes: both must not be 0", p, size)
	case !host.ValidRange(p, size):
		return 0, failf(InvalidArgument, "ncclCommRegister: the %d bytes at %#x are not mapped memory of this process", size, p)
	}
	hold, err := registrationCache(c.settings).Hold(p, size, func(how registration.How) { c.tellGone(p, size, how) })
	if err != nil {
		return 0, failf(SystemError, "ncclCommRegister: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory == nil {
		c.memory = map[uintptr]*registration.Hold{}
	}
	c.nextID++
	c.memory[c.nextID] = hold
	return c.nextID, nil
}

// tellGone is called once for a registration whose memory is gone. The handle stays good for Deregister.
func (c *Comm) tellGone(p device.Ptr, size uint64, how registration.How) {
	c.log.Warn("communicator %s: memory of the %d bytes at %#x was %v while they are registered: a network card would go on using what "+
		"was there; call ncclCommDeregister before memory is freed", c.label(), size, uintptr(p), how)
}

// Deregister forgets a registration.
func (c *Comm) Deregister(handle uintptr) error {
	c.mu.Lock()
	hold := c.memory[handle]
	delete(c.memory, handle)
	c.mu.Unlock()
	if hold == nil {
		return failf(InvalidArgument, "ncclCommDeregister: handle %#x is not registered with this communicator", handle)
	}
	hold.Release()
	return nil
}

// releaseMemory forgets what is still registered and says so.
func (c *Comm) releaseMemory() {
	c.mu.Lock()
	left := c.memory
	c.memory = nil
	c.mu.Unlock()
	for _, hold := range left {
		hold.Release()
	}
	if n := len(left); n > 0 {
		c.log.Warn("communicator %s is gone with %d buffers still registered: call ncclCommDeregister before ncclCommDestroy", c.label(), n)
	}
}

// tellRegistrations says what of the program's memory was registered, by any communicator.
func tellRegistrations(l log.Logger) {
	if cache := registrations.cache.Load(); cache != nil {
		l.Info(log.Reg, "registered buffers of this process: %v", cache.Stats())
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
