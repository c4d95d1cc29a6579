package params

import (
	"cmp"
	"math"
	"time"

	"hccl.dev/hccl/internal/cpuset"
)

// Values is a snapshot of all settings. It never changes once Load has returned it.
type Values struct {
	Debug, DebugFile, DebugSubsys string
	DebugStampFormat              string        // as written; "": no time
	DebugStampLevels              string        // as written
	Algo                          string        // as written; package proto reads the list
	BuffSize                      int64         // bytes
	MinChannels, MaxChannels      int           // 0: choose
	MinCTAs, MaxCTAs              int           // 0: choose
	MinRings, MaxRings            int           // 0: choose
	ShmDisable                    bool          //
	HostID                        string        // "": the kernel tells
	SocketIfname                  string        // as written; the transport reads the list
	SocketFamily                  string        // AF_INET, AF_INET6 or ""
	CommID                        string        // host:port, "" for none
	CommBlocking                  int           // -1: as the call's config says
	InitTimeout                   time.Duration // for a communicator to be made
	Timeout                       time.Duration // for one operation, 0: none
	PeerTimeout                   time.Duration // for a host that answers nothing
	Deterministic                 bool          //
	PortRange                     PortRange     // zero: any
	EncryptionKeyFile             string        // path, "": none
	NetRate                       int           // Mbit/s of a network card, 0: no bound
	NetPolicy                     string        // fair or large-first
	NetClass                      int           // traffic class of packets, 0: the system's
	SocketSendBuffer              int64         // bytes, 0 or less: the kernel adapts it
	SocketRecvBuffer              int64         // bytes, 0 or less: the kernel adapts it
	SocketThreads, ThreadSockets  int           // whose product is the sockets of each rail; 0: not set
	CrossNIC                      int           // 0: interfaces are paired with those of the same place only
	EagerLimit                    int64         // bytes of a message that goes at once
	NetSlots                      int           // slices of a flow on their way
	NetZeroCopy                   int           // bytes, 0: never, -1: adapt
	NetIdle                       time.Duration // until unused connections are let go of, 0: never
	NetKeepalive                  time.Duration // until an unused rail is probed, 0: never
	Preconnect                    bool          // connect when a communicator is made, not at first use
	ShmArena                      int64         // bytes
	ShmSlice                      int64         // bytes, 0: choose
	StagingInit, StagingMax       int64         // bytes
	StagingGrowth                 int64         // bytes
	StagingStep                   int           // from a class to the next: 2, 4 or 8 times
	StagingLock, StagingHuge      bool          // where the system allows it
	RegCacheEntries               int           // registrations that are kept, 0: none after use
	TopoFile, TopoDumpFile        string        // paths, "": none
	TopoDumpRank                  int           // who writes TopoDumpFile
	GraphFile, GraphDumpFile      string        // paths, "": none
	GraphDumpRank                 int           // who writes GraphDumpFile
	TopoScope                     string        // all, local or none
	FabricFile                    string        // path, "": none
	CostFile                      string        // path of measured costs; "": in CacheFolder
	IgnoreAffinity                bool          // threads may leave the processors that a launcher chose
	Spread                        bool          // threads of ranks that outnumber the processors move to those with fewer of them
	ProxyCPUs                     cpuset.Set    // of the library's own threads; empty: choose

	settings []Setting
	told     told // what report said at INFO
}

// Effect is what comes of setting a knob.
type Effect uint8

// The effects.
const (
	Acts  Effect = iota
	Inert        // accepted: nothing here depends on it, now or later
	Later        // accepted: it belongs to a part of the library that is not there yet
)

func (e Effect) String() string { return [...]string{"acts", "no effect", "not yet"}[e] }

// Knob is one setting.
type Knob struct {
	Name, Default string
	Text          string // for the manual: what it does, or why it does nothing
	form
}

// confFile names the user's settings file. It stands in the table for those who list it; source.c reads it.
const confFile = "NCCL_CONF_FILE"

var table = []Knob{
	{"NCCL_DEBUG", "", "How much is said: VERSION, WARN, INFO or TRACE (with the subject CALL each call). Nothing without it.",
		heard("WARN", level(func(v *Values) *string { return &v.Debug }))},
	{"NCCL_DEBUG_FILE", "", "File for the log in place of stderr; %h is the host's name, %p the process.",
		text(func(v *Values) *string { return &v.DebugFile })},
	{"NCCL_DEBUG_SUBSYS", "", "Subjects of INFO and TRACE, separated by commas; ^ in front leaves them out; ALL is all.",
		subjects(func(v *Values) *string { return &v.DebugSubsys })},
	{"NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T] ", "Time in front of lines, as strftime writes it; %3f: milliseconds; _: a blank; empty: none.",
		emptyToo(text(func(v *Values) *string { return &v.DebugStampFormat }))},
	{"NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN", "Levels whose lines have a time, separated by commas; ALL: each; ^ in front: all but these.",
		emptyToo(levels(func(v *Values) *string { return &v.DebugStampLevels }))},
	{confFile, "", "File with settings in place of ~/.nccl.conf; counts in the environment only.",
		form{Kind: Text, Range: "a path", set: func(*Values, string) error { return nil }}},
	{"NCCL_ALGO", "", "Algorithms, of ring, tree, star, direct, oneshot, twoshot; ^ in front excludes; func:list for one function.",
		text(func(v *Values) *string { return &v.Algo })},
	{"NCCL_BUFFSIZE", "4194304", "Upper bound of staging bytes per channel and peer; filled on demand.",
		bytes(1<<12, 1<<30, func(v *Values) *int64 { return &v.BuffSize })},
	{"NCCL_MIN_NCHANNELS", "0", "Least number of channels; 0 lets the library choose.",
		count(0, maxChannels, func(v *Values) *int { return &v.MinChannels })},
	{"NCCL_MAX_NCHANNELS", "0", "Greatest number of channels; 0 lets the library choose.",
		count(0, maxChannels, func(v *Values) *int { return &v.MaxChannels })},
	{"NCCL_MIN_CTAS", "0", "Newer name of NCCL_MIN_NCHANNELS, which goes first where both are set.",
		count(0, maxChannels, func(v *Values) *int { return &v.MinCTAs })},
	{"NCCL_MAX_CTAS", "0", "Newer name of NCCL_MAX_NCHANNELS, which goes first where both are set.",
		count(0, maxChannels, func(v *Values) *int { return &v.MaxCTAs })},
	{"NCCL_MIN_NRINGS", "0", "Oldest name of NCCL_MIN_NCHANNELS; the newer ones go first.",
		count(0, maxChannels, func(v *Values) *int { return &v.MinRings })},
	{"NCCL_MAX_NRINGS", "0", "Oldest name of NCCL_MAX_NCHANNELS; the newer ones go first.",
		count(0, maxChannels, func(v *Values) *int { return &v.MaxRings })},
	{"NCCL_SHM_DISABLE", "0", "1: ranks of one host do not use shared memory but TCP.",
		flag(func(v *Values) *bool { return &v.ShmDisable })},
	{"NCCL_HOSTID", "", "Name of this host: ranks that give another one count as ranks of another host; the kernel's boot id without it.",
		text(func(v *Values) *string { return &v.HostID })},
	{"NCCL_SOCKET_IFNAME", "", "Interfaces by prefix, separated by commas; = in front: exact names; ^ in front: all but these.",
		text(func(v *Values) *string { return &v.SocketIfname })},
	{"NCCL_SOCKET_FAMILY", "", "Addresses to use: AF_INET or AF_INET6; both without it.",
		oneOf(func(v *Values) *string { return &v.SocketFamily }, "AF_INET", "AF_INET6")},
	{"NCCL_TOPO_FILE", "", "Topology to go by, in NCCL's XML form, read once in a process; what is here completes it. See hccl topo check.",
		text(func(v *Values) *string { return &v.TopoFile })},
	{"NCCL_TOPO_DUMP_FILE", "", "File to write the topology to that was found, when a communicator is made.",
		text(func(v *Values) *string { return &v.TopoDumpFile })},
	{"NCCL_TOPO_DUMP_FILE_RANK", "0", "The rank that writes NCCL_TOPO_DUMP_FILE.",
		count(0, math.MaxInt32, func(v *Values) *int { return &v.TopoDumpRank })},
	{"NCCL_GRAPH_FILE", "", "Rings to go by, in NCCL's XML form: orders of a host's ranks, by their GPUs or, bound to none, by number.",
		text(func(v *Values) *string { return &v.GraphFile })},
	{"NCCL_GRAPH_DUMP_FILE", "", "File to write the rings to that are used on the host, when a communicator is made.",
		text(func(v *Values) *string { return &v.GraphDumpFile })},
	{"NCCL_GRAPH_DUMP_FILE_RANK", "0", "The rank that writes NCCL_GRAPH_DUMP_FILE.",
		count(0, math.MaxInt32, func(v *Values) *int { return &v.GraphDumpRank })},
	{"HCCL_TOPO_SCOPE", "all", "How much of the topology counts: all; local: within hosts; none: ranks are equally far from each other.",
		oneOf(func(v *Values) *string { return &v.TopoScope }, "all", "local", "none")},
	{"HCCL_FABRIC_FILE", "", "The network above the hosts, or what lldpd says on this one: rings pass hosts of one switch together.",
		text(func(v *Values) *string { return &v.FabricFile })},
	{"HCCL_COST_FILE", "", "File of the costs that hccl topo probe measures; without it, one for each topology in the user's cache.",
		text(func(v *Values) *string { return &v.CostFile })},
	{"NCCL_IGNORE_CPU_AFFINITY", "0", "1: NCCL_PROXY_CPUSET, and near a GPU, count also where a launcher keeps the process elsewhere.",
		flag(func(v *Values) *bool { return &v.IgnoreAffinity })},
	{"NCCL_PROXY_CPUSET", "", "Processors of the library's own threads; without it those near the card, where there are several NUMA nodes.",
		processors(func(v *Values) *cpuset.Set { return &v.ProxyCPUs })},
	{"NCCL_COMM_ID", "", "host:port at which rank 0 listens, in place of the address in the unique id.",
		text(func(v *Values) *string { return &v.CommID })},
	{"NCCL_COMM_BLOCKING", "-1", "1: calls that make a communicator wait for it; 0: they do not; -1: as their config says.",
		count(-1, 1, func(v *Values) *int { return &v.CommBlocking })},
	{"HCCL_INIT_TIMEOUT", "300", "Seconds for all ranks to come when a communicator is made; the error names the absent.",
		seconds(0.001, func(v *Values) *time.Duration { return &v.InitTimeout })},
	{"HCCL_TIMEOUT", "0", "Seconds for one operation; 0: no limit. The error names whom it waited for.",
		seconds(0, func(v *Values) *time.Duration { return &v.Timeout })},
	{"HCCL_PEER_TIMEOUT", "60", "Seconds until a host that answers nothing counts as gone, when ranks meet and in operations.",
		seconds(0.001, func(v *Values) *time.Duration { return &v.PeerTimeout })},
	{"HCCL_DETERMINISTIC", "0", "1: equal bits whatever the algorithm, channels and placement; ranks are added in order.",
		flag(func(v *Values) *bool { return &v.Deterministic })},
	{"HCCL_PORT_RANGE", "", "Ports to listen at, as first-last; any free one without it; an id cannot be made with a bad one.",
		ports(func(v *Values) *PortRange { return &v.PortRange })},
	{"HCCL_ENCRYPTION_KEY_FILE", "", "File with a key of 16 bytes or more, with which connections are encrypted; the same for all ranks.",
		text(func(v *Values) *string { return &v.EncryptionKeyFile })},
	{"HCCL_NET_RATE", "0", "Mbit/s that a host may send by each of its interfaces, all its ranks together; 0: no bound.",
		count(0, 10_000_000, func(v *Values) *int { return &v.NetRate })},
	{"HCCL_NET_POLICY", "fair", "Order of what waits for another process: fair: of each flow in turn; large-first: where most waits.",
		oneOf(func(v *Values) *string { return &v.NetPolicy }, "fair", "large-first")},
	{"HCCL_NET_TC", "0", "Traffic class of packets to other hosts: the byte TOS of IPv4, the traffic class of IPv6; 0: the system's.",
		count(0, 255, func(v *Values) *int { return &v.NetClass })},
	{"NCCL_SOCKET_SNDBUF", "-1", "Bytes of a socket's send buffer; 0 or -1: the kernel adapts it to the path.",
		bytes(-1, 1<<30, func(v *Values) *int64 { return &v.SocketSendBuffer })},
	{"NCCL_SOCKET_RCVBUF", "-1", "Bytes of a socket's receive buffer; 0 or -1: the kernel adapts it to the path.",
		bytes(-1, 1<<30, func(v *Values) *int64 { return &v.SocketRecvBuffer })},
	{"NCCL_SOCKET_NTHREADS", "0", "Sockets by each interface to another process: this times NCCL_NSOCKS_PERTHREAD, of which 8 are used; 0: " +
		"1, or where the other is 0 too as many as make it faster.",
		count(0, 16, func(v *Values) *int { return &v.SocketThreads })},
	{"NCCL_NSOCKS_PERTHREAD", "0", "Sockets by each interface to another process: this times NCCL_SOCKET_NTHREADS, of which 8 are used; 0: " +
		"1, or where the other is 0 too as many as make it faster.",
		count(0, 64, func(v *Values) *int { return &v.ThreadSockets })},
	{"NCCL_CROSS_NIC", "2", "0: interfaces reach each other by a router only if they stand at the same place on both hosts; 1, 2: any two.",
		count(0, 2, func(v *Values) *int { return &v.CrossNIC })},
	{"HCCL_EAGER_LIMIT", "-1", "Bytes up to which a message goes without its receive; -1: 8 KiB in shared memory, 32 KiB over TCP.",
		bytes(-1, 128<<10, func(v *Values) *int64 { return &v.EagerLimit })},
	{"HCCL_NET_SLOTS", "32", "Slices of a channel that may be on their way to a rank over TCP before it has read any; each waits in staging.",
		count(8, 32, func(v *Values) *int { return &v.NetSlots })},
	{"HCCL_NET_ZEROCOPY", "-1", "Bytes of a slice from which on TCP sends it without a copy; 0: never; -1: from 64 KiB, where it pays.",
		count(-1, 1<<20, func(v *Values) *int { return &v.NetZeroCopy })},
	{"HCCL_NET_IDLE", "30", "Seconds without use until connections are closed, to be made again when needed; 0: they stay.",
		seconds(0, func(v *Values) *time.Duration { return &v.NetIdle })},
	{"HCCL_NET_KEEPALIVE", "1", "Seconds without use until a rail among several is probed, then twice as long each time, to 30; 0: never.",
		seconds(0, func(v *Values) *time.Duration { return &v.NetKeepalive })},
	{"HCCL_PRECONNECT", "1", "1: processes connect when a communicator is made; 0: when one has something to send to the other.",
		flag(func(v *Values) *bool { return &v.Preconnect })},
	{"HCCL_SPREAD", "1", "1: where ranks outnumber processors, one that waits beside more others than it would elsewhere moves; 0: never.",
		flag(func(v *Values) *bool { return &v.Spread })},
	{"HCCL_SHM_ARENA", "536870912", "Greatest amount of staging memory of this process, in bytes; taken on demand.",
		bytes(1<<20, 1<<40, func(v *Values) *int64 { return &v.ShmArena })},
	{"HCCL_SHM_SLICE", "0", "Bytes of a slice, in shared memory and (256 KiB at most) over TCP; 0 lets the library choose.",
		bytes(0, 1<<26, func(v *Values) *int64 { return &v.ShmSlice })},
	{"HCCL_STAGING_INIT", "67108864", "Bytes of staging for the network that stay while there are communicators, once they were needed.",
		bytes(1<<12, 1<<40, func(v *Values) *int64 { return &v.StagingInit })},
	{"HCCL_STAGING_MAX", "536870912", "Greatest amount of staging for the network, in bytes; slices that cannot wait go beyond it.",
		bytes(4<<20, 1<<40, func(v *Values) *int64 { return &v.StagingMax })},
	{"HCCL_STAGING_GROWTH", "4194304", "Bytes by which staging for the network grows and shrinks; rounded up to a power of two.",
		bytes(4<<20, 256<<20, func(v *Values) *int64 { return &v.StagingGrowth })},
	{"HCCL_STAGING_STEP", "2", "Ratio of the sizes of staging buffers, from 4 KiB to 4 MiB: 2, 4 or 8; 3 counts as 4, 5 to 7 as 8.",
		count(2, 8, func(v *Values) *int { return &v.StagingStep })},
	{"HCCL_STAGING_LOCK", "1", "1: staging for the network is locked in memory where the limit of the process has room for all of it.",
		flag(func(v *Values) *bool { return &v.StagingLock })},
	{"HCCL_STAGING_HUGE", "1", "1: buffers of 64 KiB and more are on huge pages where the kernel allows them.",
		flag(func(v *Values) *bool { return &v.StagingHuge })},
	{"HCCL_REG_CACHE_ENTRIES", "8192", "Registrations of memory that are kept; the one unused for longest gives way; 0: none, nor any watch.",
		count(0, 1<<20, func(v *Values) *int { return &v.RegCacheEntries })},
}

// maxChannels is NCCL's bound (MAXCHANNELS in its public header's documentation of minCTAs and maxCTAs).
const maxChannels = 64

// Channels returns the bounds that are set by any of their names, 0 where there is none.
func (v *Values) Channels() (least, most int) {
	least, most = cmp.Or(v.MinChannels, v.MinCTAs, v.MinRings), cmp.Or(v.MaxChannels, v.MaxCTAs, v.MaxRings)
	if most != 0 && least > most {
		least = most
	}
	return least, most
}
