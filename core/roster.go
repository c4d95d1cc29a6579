package core

import "sync"

// roster knows things by numbers that are never given twice, so that a stale one is an error and not a crash.
type roster[T any] struct {
	mu   sync.RWMutex
	last uint64        // guarded by mu
	byID map[uint64]*T // guarded by mu
}

func (r *roster[T]) add(t *T) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[uint64]*T{}
	}
	r.last++
	r.byID[r.last] = t
	return r.last
}

func (r *roster[T]) find(id uint64) *T {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// remove reports whether the number was there.
func (r *roster[T]) remove(id uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.byID[id]
	delete(r.byID, id)
	return ok
}
