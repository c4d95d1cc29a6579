package shm

// The layout of a segment. Every part starts on a page; a page that nobody touches costs nothing.
//
//	| head | blocks | mail heads | shots | boards | mail bodies | All ports | Pair ports | Msg ports |
//
//	head    one page: magic, version, sizes; the fault record
//	block   per rank two lines: its why word, which only faults and aborts write; its state, bells and place
//	mail    per rank two generations of a line (stamp, fingerprint, 48 bytes) and of a body for what does not fit into it
//	shots   per rank three lines: how far it is in the two-shot path of two ranks (shm/fast/twoshot.c), and where its room lies
//	board   per rank one page: 64 headers of a line each
//	port    16 slices of a line each, written by the port's writer; then a line per reader with the number of slices it has
//	        read. Of an All port rank i has the i-th, of a Pair or Msg port the only one.
//
// The version changes with any of this: ranks of one job are the same build, a stray one is refused.
const (
	segmentMagic   = 0x314d48534c434348 // "HCCLSHM1"
	segmentVersion = 3

	headSize   = pageSize
	headMagic  = 0
	headTotal  = 8  // bytes of the whole segment
	headShape  = 16 // version | ranks << 16 | channels << 32
	faultState = 256
	faultRanks = 264 // two indices of 32 bits
	faultLines = 272 // two headers of 48 bytes

	blockSize  = 2 * lineSize
	blockWhy   = 0
	blockState = lineSize
	blockBells = lineSize + 8  // two indices+1 of 32 bits; one load tells that nobody sleeps
	blockPlace = lineSize + 16 // the processor that the rank waits on, +1

	mailGens  = 2
	mailBody  = 8 << 10 // most bytes of a mail
	shotLines = 3
	shotSent  = 0            // slices sent, in the first line
	shotKept  = 2 * lineSize // slices of operations that are finished, in the third
	boardLen  = 64
	boardSize = boardLen * lineSize

	ringLen  = 16 // slices of a port, a power of two
	ringSize = ringLen * lineSize

	maxLocal    = 1024
	maxChannels = 64
)

// layout is the offsets of a segment's parts.
type layout struct {
	n, channels                                         int
	heads, shots, boards, bodies, all, pair, msg, total uint64
}

func newLayout(n, channels int) layout {
	l := layout{n: n, channels: channels}
	at := uint64(headSize)
	part := func(size uint64) uint64 {
		from := at
		at += (size + pageSize - 1) &^ (pageSize - 1)
		return from
	}
	ranks, c := uint64(n), uint64(channels)
	part(ranks * blockSize)
	l.heads = part(ranks * mailGens * lineSize)
	l.shots = part(ranks * shotLines * lineSize)
	l.boards = part(ranks * boardSize)
	l.bodies = part(ranks * mailGens * mailBody)
	l.all = part(c * ranks * portSize(n))
	l.pair = part(c * ranks * ranks * portSize(1))
	l.msg = part(c * ranks * ranks * portSize(1))
	l.total = at
	return l
}

// portSize is the bytes of a port with that many readers.
func portSize(readers int) uint64 { return ringSize + uint64(readers)*lineSize }

func (l *layout) allPort(channel, writer int) uint64 {
	return l.all + uint64(channel*l.n+writer)*portSize(l.n)
}

func (l *layout) pairPort(base uint64, channel, writer, reader int) uint64 {
	return base + uint64((channel*l.n+writer)*l.n+reader)*portSize(1)
}
