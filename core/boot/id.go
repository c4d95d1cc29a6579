package boot

import (
	"fmt"
	"net/netip"

	"hccl.dev/hccl/internal/log"
)

// uniqueID is a parsed id.
type uniqueID struct {
	number uint64
	secret [16]byte
	root   [8]byte
	fixed  bool // of NCCL_COMM_ID: rank 0 listens when it calls init
	addrs  []netip.AddrPort
	left   int // likely addresses of its maker for which there was no room
}

func parseID(b []byte) (*uniqueID, error) {
	if len(b) != idSize || le.Uint32(b[idMagic:]) != idMagicValue {
		return nil, &ArgumentError{"the unique id was not made by ncclGetUniqueId of this library: pass its 128 bytes on unchanged"}
	}
	id := &uniqueID{number: le.Uint64(b[idNumber:]), fixed: b[idFixed] != 0, left: int(b[idLeft])}
	copy(id.secret[:], b[idSecret:])
	copy(id.root[:], b[idRoot:])
	port, ok := le.Uint16(b[idPort:]), true
	rest := b[idAddresses:]
	for range int(b[idCount]) {
		var a netip.Addr
		if a, rest, ok = cutAddress(rest); !ok {
			break
		}
		id.addrs = append(id.addrs, netip.AddrPortFrom(a, port))
	}
	switch v := le.Uint16(b[idVersion:]); {
	case (!ok || id.addrs == nil) && v != wireVersion:
		return nil, &ArgumentError{fmt.Sprintf("the unique id was made by another version of this library (%d, here %d): load the same one "+
			"on all ranks", v, wireVersion)}
	case !ok || id.addrs == nil || port == 0:
		return nil, &ArgumentError{"the unique id is damaged: pass its 128 bytes on unchanged"}
	}
	return id, nil
}

// parseIDs reads the ids that n ranks are shared out to. Ids made from NCCL_COMM_ID are all the same one, which then serves all.
func parseIDs(b []byte, n int) ([]*uniqueID, error) {
	if len(b) < 2*idSize || len(b)%idSize != 0 {
		id, err := parseID(b)
		return []*uniqueID{id}, err
	}
	if n < len(b)/idSize {
		return nil, &ArgumentError{fmt.Sprintf("%d unique ids for %d ranks: there can be one for each rank, not more", len(b)/idSize, n)}
	}
	var ids []*uniqueID
	seen := map[string]int{}
	for k := 0; len(b) > 0; k, b = k+1, b[idSize:] {
		id, err := parseID(b[:idSize])
		if err != nil {
			return nil, err
		}
		before, again := seen[string(b[:idSize])]
		switch {
		case again && id.fixed:
			continue
		case again:
			return nil, &ArgumentError{fmt.Sprintf("unique ids %d and %d are the same one: make each with a call of ncclGetUniqueId of its own",
				before, k)}
		}
		seen[string(b[:idSize])] = k
		ids = append(ids, id)
	}
	return ids, nil
}

const choose = "name those that lead to the other hosts in NCCL_SOCKET_IFNAME"

// tellLeft warns of an id that lacks addresses of its maker. One rank does, for all.
func (id *uniqueID) tellLeft() {
	if id.left > 0 {
		log.WarnOnce("left out of the id", "the host of the process that made the unique id has more interfaces than the id has room for: %d "+
			"of their addresses are not tried; %s there", id.left, choose)
	}
}
