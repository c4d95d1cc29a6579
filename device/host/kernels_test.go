package host

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Source s holds table[s][i%period] at element i: a prime period puts every value at every position of a vector, shows misplaced
// blocks, and lets the slow reference be computed once for each command.
const period = 331

var types = []coll.DataType{coll.Int8, coll.Uint8, coll.Int32, coll.Uint32, coll.Int64, coll.Uint64, coll.Float16, coll.Float32,
	coll.Float64, coll.Bfloat16, coll.Float8e4m3, coll.Float8e5m2, coll.Int16, coll.Uint16, coll.Bool}

// eachLevel runs f with every instruction set that this processor has. Failures name it by Level.
func eachLevel(f func()) {
	defer limit(avx512)
	for level := base; level <= avx512; level++ {
		if limit(level) == level {
			f()
		}
	}
}

// specials are patterns of type t where rules change: zeros, infinities, NaNs, the smallest and the largest numbers.
func specials(t coll.DataType) []uint64 {
	bits := 8 * t.Size()
	sign := uint64(1) << (bits - 1)
	list := []uint64{0, 1, 2, sign, sign | 1, sign - 1, sign - 2, ^uint64(0), sign + 2}
	if f, ok := formats[t]; ok {
		list = append(list, f.top, f.top-1, f.top|sign, f.nan, f.nan|sign, 1<<f.man, 1<<f.man-1, uint64(f.bias)<<f.man)
	}
	switch t {
	case coll.Float32:
		list = append(list, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x7f7fffff, 0xff7fffff, 0x00800000, 0x007fffff)
	case coll.Float64:
		list = append(list, 0x7ff<<52, 0xfff<<52, 0x7ff8<<48, 0xfff8<<48|5, 0x7ff<<52|1, 0x7ff<<52-1, 0xfff<<52-1, 1<<52, 1<<52-1)
	}
	return list
}

// element is a random value: any pattern, a special one, or a number near 1 (small integers), whose sums do not overflow.
func element(r *rand.Rand, t coll.DataType, list []uint64) uint64 {
	mask := ^uint64(0) >> (64 - 8*t.Size())
	switch r.IntN(4) {
	case 0:
		return r.Uint64() & mask
	case 1:
		return list[r.IntN(len(list))] & mask
	}
	if t.IsFloat() {
		return numberBits(t, r.NormFloat64())
	}
	return uint64(r.IntN(19)-9) & mask
}

func tables(r *rand.Rand, t coll.DataType, k int) [][]byte {
	list := specials(t)
	rows := make([][]byte, k)
	for s := range rows {
		rows[s] = make([]byte, period*t.Size())
		for i := range period {
			store(t, rows[s], i, element(r, t, list))
		}
	}
	return rows
}

// spread fills b with a row, again and again.
func spread(b, row []byte) {
	for n := 0; n < len(b); {
		n += copy(b[n:], row)
	}
}

// buffer is n bytes at an offset from a cache line, between guard bytes.
type buffer struct {
	all, data []byte
	start     int
}

const guard = 72

var untouched = bytes.Repeat([]byte{0xa5}, 2*guard+64)

func newBuffer(n uint64, offset int) buffer {
	all := bytes.Repeat([]byte{0xa5}, int(n)+2*guard+64)
	start := guard + int(-(uint64(device.BytesPtr(all))+guard)&63) + offset
	return buffer{all, all[start : start+int(n)], start}
}

func (b buffer) ptr() device.Ptr { return device.BytesPtr(b.all[b.start:]) }

// hurt tells whether a byte outside data was written.
func (b buffer) hurt() bool {
	before, after := b.all[:b.start], b.all[b.start+len(b.data):]
	return !bytes.Equal(before, untouched[:len(before)]) || !bytes.Equal(after, untouched[:len(after)])
}

// placement is how a command's buffers lie in memory.
type placement struct {
	n              int
	srcOff, dstOff int
	inPlace        int  // index of the source that is Dst[0]; -1: none
	inPlace2       bool // Dst[1] is source 0
	ndst           int
	stream         bool
}

// check runs c with its sources made from rows, and compares every destination with want.
func check(t *testing.T, c device.Cmd, rows [][]byte, want []byte, out coll.DataType, p placement) {
	t.Helper()
	inBytes, outBytes := uint64(p.n)*c.SrcType.Size(), uint64(p.n)*out.Size()
	c.N, c.NSrc, c.NDst, c.Stream = uint64(p.n), uint8(len(rows)), uint8(p.ndst), p.stream
	var srcs [device.MaxSrc]buffer
	for s, row := range rows {
		srcs[s] = newBuffer(inBytes, (p.srcOff+3*s)%8)
		spread(srcs[s].data, row)
		c.Src[s] = srcs[s].ptr()
	}
	dsts := [2]buffer{newBuffer(outBytes, p.dstOff), newBuffer(outBytes, (p.dstOff+5)%8)}
	if p.inPlace >= 0 && out == c.SrcType {
		dsts[0] = srcs[p.inPlace]
	}
	if p.inPlace2 && p.inPlace != 0 && out == c.SrcType {
		dsts[1] = srcs[0]
	}
	for d := range p.ndst {
		c.Dst[d] = dsts[d].ptr()
	}
	_, err := (Queue{}).Submit([]device.Cmd{c})
	runtime.KeepAlive(&srcs) // an address in a Cmd keeps nothing alive
	if err != nil {
		t.Fatal(err)
	}
	for d := range p.ndst {
		if dsts[d].hurt() {
			t.Fatalf("%v: bytes beside destination %d were written", name(&c, p), d)
		}
		if i := differs(dsts[d].data, want, int(out.Size())); i >= 0 {
			t.Fatalf("%v: destination %d element %d is %#x, want %#x, from %#x", name(&c, p), d, i, load(out, dsts[d].data, i),
				load(out, want, i%period), patterns(c.SrcType, rows, i%period))
		}
	}
}

func name(c *device.Cmd, p placement) string {
	return fmt.Sprintf("%s: op %d %v of %v to %v, scaled %d, %+v, %d sources", Level(), c.Op, c.Red,
		c.SrcType, c.DstType, c.Scaled, p, c.NSrc)
}

func patterns(t coll.DataType, rows [][]byte, i int) []uint64 {
	var list []uint64
	for _, row := range rows {
		list = append(list, load(t, row, i))
	}
	return list
}

// differs is the first element of got that is not the periodic want, or -1.
func differs(got, want []byte, size int) int {
	for at := 0; at < len(got); at += len(want) {
		n := min(len(want), len(got)-at)
		if bytes.Equal(got[at:at+n], want[:n]) {
			continue
		}
		for i := 0; i < n; i += size {
			if !bytes.Equal(got[at+i:at+i+size], want[i:i+size]) {
				return (at + i) / size
			}
		}
	}
	return -1
}

func counts() []int {
	list := []int{255, 256, 257, 1023, 1024, 1025, 5000, 65537}
	for n := range 68 {
		list = append(list, n)
	}
	return list
}

// reduceCmd is a whole reduction of k sources of type t.
func reduceCmd(t coll.DataType, red coll.RedOp, k int) device.Cmd {
	c := device.Cmd{Op: device.Reduce, Red: red, SrcType: t, DstType: t, Acc: device.Accumulator(t, red), Scaled: -1}
	if red == coll.Avg {
		c.Div = uint64(k)
	}
	return c
}

func expected(c *device.Cmd, rows [][]byte) []byte {
	want := make([]byte, period*c.SrcType.Size())
	for i := range period {
		store(c.SrcType, want, i, reference(c, rows, i))
	}
	return want
}

func TestReduce(t *testing.T) {
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(typ)))
			for red := range coll.NumOps {
				for _, k := range []int{1, 2, 3, 5, 8} {
					if !red.Takes(typ) {
						continue
					}
					reduceOf(t, r, typ, red, k)
				}
			}
		})
	}
}

func reduceOf(t *testing.T, r *rand.Rand, typ coll.DataType, red coll.RedOp, k int) {
	c, rows := reduceCmd(typ, red, k), tables(r, typ, k)
	if red == coll.PreMulSum {
		c.Scaled, c.Scale = int8(r.IntN(k)), element(r, typ, specials(typ))
	}
	want := expected(&c, rows)
	eachLevel(func() { places(t, c, rows, want) })
}

// places runs one command over all counts, while placement goes round.
func places(t *testing.T, c device.Cmd, rows [][]byte, want []byte) {
	for turn, n := range counts() {
		p := placement{n: n, srcOff: turn % 8, dstOff: turn / 8 % 8, inPlace: turn%(len(rows)+2) - 2, ndst: 1 + turn%2,
			stream: turn%3 == 0, inPlace2: turn%5 == 0}
		check(t, c, rows, want, c.DstType, p)
	}
	for off := range 64 {
		check(t, c, rows, want, c.DstType, placement{n: 301, srcOff: off % 8, dstOff: off / 8, inPlace: -1, ndst: 1})
	}
}

func TestCopy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range types {
		for scaled := int8(-1); scaled <= 0; scaled++ {
			if scaled == 0 && !coll.PreMulSum.Takes(typ) {
				continue
			}
			c, rows := device.Cmd{Op: device.Copy, SrcType: typ, DstType: typ, Scaled: scaled}, tables(r, typ, 1)
			c.Scale = element(r, typ, specials(typ))
			want := expected(&c, rows)
			eachLevel(func() { places(t, c, rows, want) })
		}
	}
}
