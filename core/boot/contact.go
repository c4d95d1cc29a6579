package boot

import "net/netip"

// cutAddress takes a packed address off b: addressV4 and 4 bytes, or an IPv6 address without its longest run of zeros, behind a byte
// that says where they stand and how many they are.
func cutAddress(b []byte) (a netip.Addr, rest []byte, ok bool) {
	if len(b) == 0 {
		return a, nil, false
	}
	if b[0] == addressV4 {
		if len(b) < 5 {
			return a, nil, false
		}
		return netip.AddrFrom4([4]byte(b[1:5])), b[5:], true
	}
	var full [16]byte
	start, run := int(b[0]>>4), int(b[0]&15)
	if start+run > len(full) || len(b) < 1+len(full)-run {
		return a, nil, false
	}
	b = b[1:]
	copy(full[:start], b)
	copy(full[start+run:], b[start:])
	return netip.AddrFrom16(full), b[len(full)-run:], true
}

func packAddress(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		return append(append(b, addressV4), a.AsSlice()...)
	}
	full, start, run := a.As16(), 0, 0
	for s := range full {
		n := 0
		for n < 15 && s+n < len(full) && full[s+n] == 0 {
			n++
		}
		if n > run {
			start, run = s, n
		}
	}
	b = append(b, byte(start<<4|run))
	return append(append(b, full[:start]...), full[start+run:]...)
}

// contact is how to reach a rank's inbox: opaque to the root, which hands it to the rank's partners.
//
//	key (16) count (1) then for each address: packed address (2 to 17), port (2)
type contact struct {
	key   Key
	addrs []netip.AddrPort
}

func (c *contact) encode() []byte {
	b := append(append([]byte{}, c.key[:]...), byte(len(c.addrs)))
	for _, a := range c.addrs {
		b = le.AppendUint16(packAddress(b, a.Addr()), a.Port())
	}
	return b
}

func decodeContact(b []byte) (c contact, ok bool) {
	const head = len(c.key) + 1
	if len(b) < head {
		return c, false
	}
	copy(c.key[:], b)
	count, b := int(b[head-1]), b[head:]
	for range count {
		var a netip.Addr
		if a, b, ok = cutAddress(b); !ok || len(b) < 2 {
			return c, false
		}
		c.addrs = append(c.addrs, netip.AddrPortFrom(a, le.Uint16(b)))
		b = b[2:]
	}
	return c, len(b) == 0
}
