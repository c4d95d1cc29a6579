package host

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// submit runs c over slices, which it keeps alive until then. init may be nil.
func submit(t *testing.T, c device.Cmd, dst, init []byte, srcs ...[]byte) {
	t.Helper()
	c.Dst[0], c.NDst, c.NSrc = device.BytesPtr(dst), 1, uint8(len(srcs))
	if init != nil {
		c.Init = device.BytesPtr(init)
	}
	for i, s := range srcs {
		c.Src[i] = device.BytesPtr(s)
	}
	_, err := Queue{}.Submit([]device.Cmd{c})
	runtime.KeepAlive([][][]byte{{dst, init}, srcs})
	if err != nil {
		t.Fatal(err)
	}
}

// A reduction in three commands, whose partial sums are of the accumulator's type, gives the bits of one command.
func TestPartialSums(t *testing.T) {
	const n, k = 1500, 7
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range types {
		for red := range coll.NumOps {
			if !red.Takes(typ) {
				continue
			}
			c, rows := reduceCmd(typ, red, k), tables(r, typ, k)
			c.N = n
			want, srcs := expected(&c, rows), make([][]byte, k)
			for s := range srcs {
				srcs[s] = make([]byte, n*typ.Size())
				spread(srcs[s], rows[s])
			}
			c.Scaled = -1
			if coll.PreMulSum.Takes(typ) {
				c.Scaled, c.Scale = 3, one(typ)
			}
			eachLevel(func() {
				got := inParts(t, c, srcs)
				if i := differs(got, want, int(typ.Size())); i >= 0 {
					t.Fatalf("%s: %v %v: element %d is %#x, want %#x", Level(), red, typ, i, load(typ, got, i), load(typ, want, i%period))
				}
			})
		}
	}
}

// one is the factor that changes nothing, so that scaling takes part without changing what is wanted.
func one(t coll.DataType) uint64 {
	if t.IsFloat() {
		return numberBits(t, 1)
	}
	return 1
}

// inParts reduces two sources, then one more, then the rest. Of types that are their own accumulator a partial sum says by a
// divisor of 0 that it is one.
func inParts(t *testing.T, c device.Cmd, srcs [][]byte) []byte {
	partial := c
	partial.DstType, partial.Scaled, partial.Div = c.Acc, -1, 0
	acc, dst := make([]byte, c.N*c.Acc.Size()), make([]byte, c.N*c.DstType.Size())
	submit(t, partial, acc, nil, srcs[0], srcs[1])
	submit(t, partial, acc, acc, srcs[2])
	c.Scaled = max(c.Scaled-3, -1)
	submit(t, c, dst, acc, srcs[3:]...)
	return dst
}

// Partial sums of several ranks are sources too.
func TestSumOfPartials(t *testing.T) {
	for _, typ := range []coll.DataType{coll.Bfloat16, coll.Float16, coll.Float8e4m3, coll.Float8e5m2} {
		c := device.Cmd{Op: device.Reduce, SrcType: coll.Float32, Acc: coll.Float32, DstType: typ, Scaled: -1, N: 100}
		a, b, dst := make([]byte, 400), make([]byte, 400), make([]byte, 100*typ.Size())
		for i := range 100 {
			store(coll.Float32, a, i, uint64(math.Float32bits(float32(i)/7)))
			store(coll.Float32, b, i, uint64(math.Float32bits(1/(1+float32(i)))))
		}
		eachLevel(func() {
			submit(t, c, dst, nil, a, b)
			for i := range 100 {
				want := numberBits(typ, float64(float32(i)/7+1/(1+float32(i))))
				if got := load(typ, dst, i); got != want {
					t.Fatalf("%s: %v element %d is %#x, want %#x", Level(), typ, i, got, want)
				}
			}
		})
	}
}

// Every pattern of the narrow floats decodes to its value.
func TestDecode(t *testing.T) {
	for typ, f := range formats {
		n := 1 << f.width
		src, dst := make([]byte, n*int(typ.Size())), make([]byte, 4*n)
		for i := range n {
			store(typ, src, i, uint64(i))
		}
		c := device.Cmd{Op: device.Reduce, SrcType: typ, Acc: coll.Float32, DstType: coll.Float32, Scaled: -1, N: uint64(n)}
		eachLevel(func() {
			submit(t, c, dst, nil, src)
			for i := range n {
				if got, want := load(coll.Float32, dst, i), numberBits(coll.Float32, f.decode(uint64(i))); got != want {
					t.Fatalf("%s: %v %#x is %#x, want %#x", Level(), typ, i, got, want)
				}
			}
		})
	}
}

// Rounding is right at, just above and just below every number of the type and every middle between two of them.
func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for typ, f := range formats {
		var values []uint32
		near := func(v float64) {
			bits := math.Float32bits(float32(v))
			values = append(values, bits, bits+1, bits-1, bits|1<<31, bits+1|1<<31, (bits-1)|1<<31)
		}
		for mag := range f.top {
			near(f.magnitude(mag))
			near((f.magnitude(mag) + f.magnitude(mag+1)) / 2)
		}
		for range 20000 {
			values = append(values, r.Uint32())
		}
		src, dst := make([]byte, 4*len(values)), make([]byte, len(values)*int(typ.Size()))
		for i, v := range values {
			store(coll.Float32, src, i, uint64(v))
		}
		c := device.Cmd{Op: device.Reduce, SrcType: coll.Float32, Acc: coll.Float32, DstType: typ, Scaled: -1, N: uint64(len(values))}
		want := make([]byte, len(dst))
		for i, v := range values {
			store(typ, want, i, f.encode(float64(math.Float32frombits(v))))
		}
		eachLevel(func() {
			submit(t, c, dst, nil, src)
			for i, v := range values {
				if got, want := load(typ, dst, i), load(typ, want, i); got != want {
					t.Fatalf("%s: %v of %#x is %#x, want %#x", Level(), typ, v, got, want)
				}
			}
		})
	}
}

// A copy moves bits: no NaN changes.
func TestCopyKeepsBits(t *testing.T) {
	src := []byte{1, 0, 0x80, 0x7f, 0x45, 0x23, 0xc1, 0xff, 0xff, 0xff, 0xff, 0xff}
	dst := make([]byte, len(src))
	for _, n := range []uint64{3, 2, 1} {
		submit(t, device.Cmd{Op: device.Copy, SrcType: coll.Float32, Scaled: -1, N: n, Stream: n == 2}, dst, nil, src)
		if !bytes.Equal(dst[:4*n], src[:4*n]) {
			t.Fatalf("copied %x, got %x", src, dst)
		}
	}
}

func TestRefused(t *testing.T) {
	good := device.Cmd{Op: device.Reduce, SrcType: coll.Float32, Acc: coll.Float32, DstType: coll.Float32, NSrc: 2, NDst: 1, Scaled: -1}
	for name, spoil := range map[string]func(c *device.Cmd){
		"operation":    func(c *device.Cmd) { c.Op = 9 },
		"reduction":    func(c *device.Cmd) { c.Red = coll.NumOps },
		"type":         func(c *device.Cmd) { c.SrcType = coll.NumTypes },
		"accumulator":  func(c *device.Cmd) { c.Acc = coll.Float64 },
		"result":       func(c *device.Cmd) { c.DstType = coll.Int8 },
		"no sources":   func(c *device.Cmd) { c.NSrc = 0 },
		"many sources": func(c *device.Cmd) { c.NSrc = device.MaxSrc + 1 },
		"destinations": func(c *device.Cmd) { c.NDst = 3 },
		"scaled":       func(c *device.Cmd) { c.Scaled = 2 },
		"divisor":      func(c *device.Cmd) { c.Red, c.Div = coll.Avg, 1<<40 },
		"copy of two":  func(c *device.Cmd) { c.Op = device.Copy },
		"narrow mean": func(c *device.Cmd) {
			c.SrcType, c.Acc, c.DstType, c.Red, c.Div = coll.Int8, coll.Int8, coll.Int8, coll.Avg, 2
		},
		"bits of floats": func(c *device.Cmd) { c.Red = coll.Xor },
		"mean of truth": func(c *device.Cmd) {
			c.SrcType, c.Acc, c.DstType, c.Red = coll.Bool, coll.Bool, coll.Bool, coll.Avg
		},
		"scaled truth":    func(c *device.Cmd) { c.SrcType, c.Acc, c.DstType, c.Scaled = coll.Bool, coll.Bool, coll.Bool, 0 },
		"bits in 64 bits": func(c *device.Cmd) { c.SrcType, c.Acc, c.DstType, c.Red = coll.Int16, coll.Int16, coll.Bool, coll.And },
		"wide product": func(c *device.Cmd) {
			c.SrcType, c.Acc, c.DstType, c.Red = coll.Int64, coll.Int128, coll.Int64, coll.Prod
		},
	} {
		c := good
		spoil(&c)
		if _, err := (Queue{}).Submit([]device.Cmd{good, c, good}); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
	if _, err := (Queue{}).Submit([]device.Cmd{good, good}); err != nil {
		t.Error(err)
	}
}

func TestSubmitAllocatesNothing(t *testing.T) {
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	cmds := []device.Cmd{reduceCmd(coll.Bfloat16, coll.Sum, 3), {Op: device.Copy, NSrc: 1, NDst: 1, Scaled: -1, N: 8}}
	for i := range cmds {
		cmds[i].NSrc, cmds[i].NDst, cmds[i].N = uint8(3-2*i), 1, 1000
		cmds[i].Dst[0] = device.BytesPtr(a)
		for s := range cmds[i].NSrc {
			cmds[i].Src[s] = device.BytesPtr(b)
		}
	}
	var q device.Queue = Queue{}
	got := testing.AllocsPerRun(100, func() {
		for i := range cmds {
			if f, err := q.Submit(cmds[i : i+1]); err != nil || !f.Done() {
				t.Fatal(f, err)
			}
		}
	})
	runtime.KeepAlive([][]byte{a, b})
	if got != 0 {
		t.Errorf("%v allocations per submission, want 0", got)
	}
}
