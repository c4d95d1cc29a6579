package main

import (
	"encoding/binary"
	"slices"
	"time"

	"hccl.dev/hccl/graph/cost"
)

// chat is how two ranks measure the way between them. The one of the lower number speaks first.
//
//	lower  send long >  < send long   ping >  < pong ...   count > long > ... long >  < ack   < count  < long ...   ack >
//	       once, to make room         latency              rate from here                     rate from there
type chat struct {
	me        int
	comm      communicator
	share     float64 // seconds for one direction
	long      []byte
	short     []byte
	longBytes int
}

const (
	pings     = 64
	fewPings  = 8    // before those that count
	mostLongs = 1024 // messages for one rate
	shortest  = 8    // bytes
)

func newChat(r *runner, share float64) (*chat, error) {
	c := &chat{me: r.first, comm: r.comms[0], share: share, longBytes: max(int(r.probe.bytes), 1)}
	var err error
	if c.long, err = buffer(c.longBytes); err == nil {
		c.short, err = buffer(shortest)
	}
	return c, err
}

// send and recv return when the message is through on this side.
func (c *chat) send(to int, b []byte) error {
	_, err := newProgram([]call{{id: callSend, send: start(b), count: len(b), to: to, comm: c.comm}}, 1).run(1, nil)
	return err
}

func (c *chat) recv(from int, b []byte) error {
	_, err := newProgram([]call{{id: callRecv, recv: start(b), count: len(b), from: from, comm: c.comm}}, 1).run(1, nil)
	return err
}

// with measures the way to a peer, and has the peer measure the way back.
func (c *chat) with(peer int) (v cost.Measured, err error) {
	first := c.me < peer
	if err := c.swap(peer, c.long, first); err != nil {
		return v, err
	}
	if v.Latency, err = c.latency(peer, first); err != nil {
		return v, err
	}
	if first {
		if v.Rate, err = c.rate(peer); err == nil {
			err = c.answer(peer)
		}
		return v, err
	}
	if err = c.answer(peer); err == nil {
		v.Rate, err = c.rate(peer)
	}
	return v, err
}

// swap sends and receives, in this order for the first.
func (c *chat) swap(peer int, b []byte, first bool) error {
	one, other := c.send, c.recv
	if !first {
		one, other = c.recv, c.send
	}
	if err := one(peer, b); err != nil {
		return err
	}
	return other(peer, b)
}

// latency is half of what a short message and its answer take, the middle of many.
func (c *chat) latency(peer int, first bool) (float64, error) {
	var samples []float64
	for k := range fewPings + pings {
		from := time.Now()
		if err := c.swap(peer, c.short, first); err != nil {
			return 0, err
		}
		if k >= fewPings {
			samples = append(samples, time.Since(from).Seconds()/2)
		}
	}
	slices.Sort(samples)
	return samples[len(samples)/2], nil
}

// rate is bytes a second: of as many long messages as the time allows, until the peer has the last one.
func (c *chat) rate(peer int) (float64, error) {
	once, err := c.burst(peer, 1)
	if err != nil {
		return 0, err
	}
	n := int(min(max(c.share/once, 1), mostLongs))
	seconds, err := c.burst(peer, n)
	return float64(n) * float64(c.longBytes) / max(seconds, 1e-9), err
}

func (c *chat) burst(peer, n int) (seconds float64, err error) {
	binary.NativeEndian.PutUint64(c.short, uint64(n))
	if err := c.send(peer, c.short); err != nil {
		return 0, err
	}
	from := time.Now()
	for range n {
		if err := c.send(peer, c.long); err != nil {
			return 0, err
		}
	}
	err = c.recv(peer, c.short)
	return time.Since(from).Seconds(), err
}

// answer is the other side of rate.
func (c *chat) answer(peer int) error {
	for range 2 {
		if err := c.recv(peer, c.short); err != nil {
			return err
		}
		n := binary.NativeEndian.Uint64(c.short)
		for range n {
			if err := c.recv(peer, c.long); err != nil {
				return err
			}
		}
		if err := c.send(peer, c.short); err != nil {
			return err
		}
	}
	return nil
}
