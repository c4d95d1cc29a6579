package proto_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
)

// prepareBytes gives every rank random bytes, whatever they mean in the type: not-a-number and infinities among them.
func (c *call) prepareBytes(rng *rand.Rand) {
	size := c.typ.Size()
	for r := range c.key.N {
		mem := make([]byte, 2*c.count*size+64)
		for i := range mem {
			mem[i] = byte(rng.Uint32())
		}
		c.send, c.recv = append(c.send, 0), append(c.recv, c.count*size)
		c.mem, c.before = append(c.mem, mem), append(c.before, bytes.Clone(mem))
		c.ops = append(c.ops, proto.Op{Func: c.key.Func, Type: c.typ, Red: c.red, N: c.key.N, Rank: r, Count: c.count,
			Scale: rng.Uint64(), Send: device.BytesPtr(mem), Recv: device.BytesPtr(mem[c.count*size:])})
	}
}

// verifyOnHost computes each element of an all-reduce by commands of its own.
func (c *call) verifyOnHost(t testing.TB) {
	t.Helper()
	size := c.typ.Size()
	for i := range c.count {
		want := c.hostSum(t, i)
		for r := range c.mem {
			at := c.recv[r] + i*size
			if got := c.mem[r][at : at+size]; !bytes.Equal(got, want) {
				t.Fatalf("%v: rank %d, element %d is % x, wanted % x", c, r, i, got, want)
			}
		}
	}
}

func (c *call) hostSum(t testing.TB, i uint64) []byte {
	size, n := c.typ.Size(), c.key.N
	terms := make([][]byte, n)
	for r := range terms {
		terms[r] = bytes.Clone(c.before[r][i*size : (i+1)*size])
		if c.red == coll.PreMulSum {
			c.submit(t, device.Cmd{Op: device.Copy, Scaled: 0, Scale: c.ops[r].Scale}, terms[r], terms[r])
		}
	}
	red := c.red
	if red == coll.PreMulSum {
		red = coll.Sum
	}
	out := make([]byte, size)
	if c.key.Algo == proto.Tree {
		return c.hostTreeSum(t, red, terms, 0)
	}
	if c.key.Algo != proto.Ring {
		c.submit(t, device.Cmd{Op: device.Reduce, Red: red, Scaled: -1}, out, terms...)
		return out
	}
	first := proto.ChunkOf(&c.ops[0], n, c.key.Channels, i)
	copy(out, terms[first])
	for k := 1; k < n; k++ {
		hop := red
		if red == coll.Avg && k < n-1 {
			hop = coll.Sum
		}
		c.submit(t, device.Cmd{Op: device.Reduce, Red: hop, Scaled: -1}, out, bytes.Clone(out), terms[(first+k)%n])
	}
	return out
}

// hostTreeSum is the sum of the terms from place on that are below it in the tree.
func (c *call) hostTreeSum(t testing.TB, red coll.RedOp, terms [][]byte, place int) []byte {
	all := [][]byte{terms[place]}
	for child := range proto.Below(place, len(terms)) {
		all = append(all, c.hostTreeSum(t, red, terms, child))
	}
	if red == coll.Avg && place > 0 {
		red = coll.Sum
	}
	out := make([]byte, len(terms[place]))
	c.submit(t, device.Cmd{Op: device.Reduce, Red: red, Scaled: -1}, out, all...)
	return out
}

// submit runs one command on single elements.
func (c *call) submit(t testing.TB, cmd device.Cmd, dst []byte, src ...[]byte) {
	t.Helper()
	cmd.SrcType, cmd.DstType, cmd.Acc = c.typ, c.typ, device.Accumulator(c.typ, c.red)
	if cmd.Op == device.Copy {
		cmd.Acc = c.typ
	}
	cmd.N, cmd.NDst, cmd.NSrc, cmd.Div = 1, 1, uint8(len(src)), uint64(c.key.N)
	cmd.Dst[0] = device.BytesPtr(dst)
	for k := range src {
		cmd.Src[k] = device.BytesPtr(src[k])
	}
	if _, err := (host.Queue{}).Submit([]device.Cmd{cmd}); err != nil {
		t.Fatal(err)
	}
}
