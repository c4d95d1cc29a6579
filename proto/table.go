package proto

import "fmt"

// Table keeps the opened ports of one rank of a communicator, so that each is opened once, when a plan first uses it. It is owned
// by whoever starts Runs of that communicator and is not safe for use by two of them at the same moment.
type Table struct {
	ports   Ports
	n, rank int
	chans   []channelPorts
}

type channelPorts struct {
	outs [3][]Out // by kind and peer; kind All has one entry
	ins  [3][]In
}

// NewTable returns an empty table of the ports of rank among n.
func NewTable(ports Ports, n, rank int) *Table { return &Table{ports: ports, n: n, rank: rank} }

func (t *Table) channel(c int) *channelPorts {
	for len(t.chans) <= c {
		t.chans = append(t.chans, channelPorts{})
	}
	return &t.chans[c]
}

// Out returns the writing end, opened if need be.
func (t *Table) Out(kind Kind, channel, peer int) (Out, error) {
	if kind == All {
		peer = 0
	}
	ends := &t.channel(channel).outs[kind]
	if *ends == nil {
		*ends = make([]Out, t.n)
	}
	if (*ends)[peer] == nil {
		o, err := t.ports.Out(kind, channel, peer)
		if err != nil {
			return nil, fmt.Errorf("rank %d cannot open its port to rank %d, channel %d: %w", t.rank, peer, channel, err)
		}
		(*ends)[peer] = o
	}
	return (*ends)[peer], nil
}

// In returns the reading end of what peer writes, opened if need be.
func (t *Table) In(kind Kind, channel, peer int) (In, error) {
	ends := &t.channel(channel).ins[kind]
	if *ends == nil {
		*ends = make([]In, t.n)
	}
	if (*ends)[peer] == nil {
		i, err := t.ports.In(kind, channel, peer)
		if err != nil {
			return nil, fmt.Errorf("rank %d cannot open its port from rank %d, channel %d: %w", t.rank, peer, channel, err)
		}
		(*ends)[peer] = i
	}
	return (*ends)[peer], nil
}
