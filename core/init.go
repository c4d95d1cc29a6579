package core

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm"
	"hccl.dev/hccl/shm/fast"
)

// InitSpec is a communicator to be made from unique ids.
type InitSpec struct {
	ID       uint64 // its number in this process
	Handle   Handle
	N, Rank  int
	Device   int
	IDs      [][]byte // unique ids, to whose makers the ranks are shared out
	Blocking bool
	Name     string
	Began    func(*Comm) // told of the communicator before anything is waited for, so that it can be aborted; may be nil
}

// newComm registers a communicator that is yet to be made, so that Abort finds it.
func newComm(s *InitSpec) (*Comm, error) {
	v := params.Load()
	log.InfoOnce(log.Init, "library", "this is %s", Library)
	_ = algos(v) // reports a list that cannot be read, also where there is nobody to agree with
	if err := configureBoot(v, s.N > 1); err != nil {
		return nil, err
	}
	c := &Comm{id: s.ID, handle: s.Handle, n: s.N, rank: s.Rank, device: s.Device, blocking: s.Blocking, awaited: s.Blocking,
		name: s.Name, log: log.Rank(s.Rank), settings: v, queue: hostQueue, shut: make(chan struct{})}
	c.prepare()
	register(c)
	if s.Began != nil {
		s.Began(c)
	}
	return c, nil
}

// unable lets the other ranks know that this one fails before it can meet them.
func (s *InitSpec) unable(why error) {
	if s.N > 1 {
		boot.Unable(bytes.Join(s.IDs, nil), s.Rank, s.N, why)
	}
}

// prepare sets up what does not depend on other ranks.
func (c *Comm) prepare() {
	c.gone = newGone(c.n)
	c.solo.comms = []*Comm{c}
	c.crowded = c.n > shm.Processors()
	c.patience.Store(int64(c.settings.Timeout))
}

// make meets the other ranks and connects them. A blocking caller gets the error; the communicator is gone then.
func (c *Comm) make(s *InitSpec) error {
	c.phases.begin()
	if err := c.build(func() error { return c.meet(s) }); err != nil {
		return err
	}
	c.introduce("made")
	return nil
}

func (c *Comm) meet(s *InitSpec) error {
	if c.n == 1 {
		return nil
	}
	deadline := time.Now().Add(c.settings.InitTimeout)
	svc, err := pool.Open(pin)
	if err != nil {
		s.unable(err)
		return err
	}
	ids := bytes.Join(s.IDs, nil)
	c.secret = secretOf(ids)
	mine := c.describe(svc)
	c.phases.end("looking at the host")
	inbox := svc.Expect(mine.Door, c.secret[:])
	defer inbox.Close()
	inbox.Awaits(c.n)
	defer inbox.Awaits(0)
	log.InfoOnce(log.Net, "interfaces", "%s", svc.Choice())
	told := openTable(c.secret)
	defer closeTable(c.secret)
	blobs, err := boot.Meet(ids, c.rank, c.n, mine.Append(nil), c.limit(deadline))
	if err != nil {
		return err
	}
	if c.peers, err = told.take(c.rank, blobs); err != nil {
		return err
	}
	c.agreed = agree(c.rank, c.peers)
	c.phases.end("agreement")
	if err := c.lay(inbox, deadline); err != nil {
		return err
	}
	return c.connect(inbox, deadline)
}

// describe is what this rank tells all others.
func (c *Comm) describe(svc *boot.Service) *wire.Peer {
	me := self()
	p := &wire.Peer{Library: Library, PID: me.pid, Started: me.started, BootID: me.bootID, NetNS: me.netNS, PIDNS: me.pidNS,
		SegmentKey: newKey(), Door: svc.NewKey(),
		Addrs: svc.Addrs(), Rails: svc.Rails(), Settings: shared(c.settings), Device: int32(c.device)}
	if c.settings.HostID != "" {
		p.BootID = "NCCL_HOSTID=" + c.settings.HostID
	}
	p.Process, p.Token = pool.Name()
	p.NUMA, p.Cache = standing()
	c.describeTopology(p)
	if c.settings.ShmDisable {
		return p
	}
	if local, err := share(c.settings); err == nil {
		p.CanShare, p.Exchange, p.ArenaKey = true, local.Name(), sharing.arenaKey
		p.Settings = append(p.Settings, wire.Setting{Name: shmArena, Value: strconv.FormatUint(local.ArenaSize(), 10)})
	}
	return p
}

// secret is what only the ranks of one communicator know.
type secret [sha256.Size]byte

func secretOf(id []byte) secret { return sha256.Sum256(id) }

// limit is the deadline and the way out for waits during init.
func (c *Comm) limit(deadline time.Time) boot.Limit {
	return boot.Limit{Deadline: deadline, Peer: c.settings.PeerTimeout, Abort: c.aborted, Lap: c.phases.end}
}

// finish makes the hot state and hands the communicator over.
func (c *Comm) finish() error {
	c.place()
	hot, err := fast.New(fast.Config{Seg: c.seg, N: c.n, Rank: c.rank, Kernel: host.RunFunc(),
		TwoShot: c.free() && c.agreed.setting.Slice == 0 && c.agreed.setting.MinChannels <= 1, StreamFrom: host.Queue{}.StreamFrom()})
	if err != nil {
		return err
	}
	c.hot = hot
	c.table = proto.NewTable(c.ports, c.n, c.rank)
	if c.direct() {
		hot.Open(true)
		c.handle.Ready(c.rank, c.n, hot)
	} else {
		c.handle.Ready(c.rank, c.n, nil)
	}
	if !c.stage.CompareAndSwap(making, made) {
		c.handle.Ready(c.rank, c.n, nil)
		return c.aborted()
	}
	return nil
}
