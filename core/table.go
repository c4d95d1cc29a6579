package core

import (
	"bytes"
	"slices"
	"sync"

	"hccl.dev/hccl/proto/wire"
)

// table is what the ranks of a communicator have told of themselves, as one of this process's ranks has read it for all of them: with
// hundreds of ranks as threads, reading and keeping it once for each would be the square of their number.
type table struct {
	users int // guarded by tables.mu: ranks of this process that are meeting the others
	read  sync.Once
	blobs [][]byte // that were read
	peers []wire.Peer
	bad   int // the rank whose words make no sense
	err   error
}

var tables struct {
	mu sync.Mutex
	by map[secret]*table // guarded by mu
}

// openTable is called by each rank before it meets the others, closeTable after it has.
func openTable(s secret) *table {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	if tables.by == nil {
		tables.by = map[secret]*table{}
	}
	t := tables.by[s]
	if t == nil {
		t = &table{}
		tables.by[s] = t
	}
	t.users++
	return t
}

func closeTable(s secret) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	t := tables.by[s]
	if t.users--; t.users == 0 {
		delete(tables.by, s)
	}
}

// take returns what all ranks have told: a list of the caller's own, whose texts and lists nobody changes.
func (t *table) take(me int, blobs [][]byte) ([]wire.Peer, error) {
	t.read.Do(func() { t.decode(blobs) })
	if !slices.EqualFunc(blobs, t.blobs, bytes.Equal) { // NCCL_COMM_ID: the table of the job before, which another rank still makes
		t = &table{}
		t.decode(blobs)
	}
	if t.err != nil {
		return nil, failf(RemoteError, "rank %d and rank %d do not understand each other: %w; load the same library on all ranks (%s here)",
			t.bad, me, t.err, Library)
	}
	return slices.Clone(t.peers), nil
}

func (t *table) decode(blobs [][]byte) {
	t.blobs, t.peers = blobs, make([]wire.Peer, len(blobs))
	for r, b := range blobs {
		if t.err = t.peers[r].Decode(b); t.err != nil {
			t.bad = r
			return
		}
	}
}
