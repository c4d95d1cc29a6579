// Package shm is the transport between the processes of one host, and between ranks of one process: memory that all of them map.
//
// Four things are in it, each usable without the next:
//
//   - Local is this process among the others: an abstract unix socket by which memory is handed over (Offer, Fetch), the arena
//     from which staging is lent to ports, a pool of bells on which threads sleep, and the watch for the death of peers.
//   - Peer is another process of this host: its arena as mapped here, and the means to learn of its death.
//   - Segment is one communicator's memory on this host: per rank a why word, a bell reference, a presence and a board of the last
//     operation headers; one fault record; port rings; and the mail slots of package shm/fast.
//   - Ports are a rank's ends of proto's ports on a segment. A slice lies in the writer's arena and is described by one cache
//     line in the segment, whose stamp is stored last: the stamp is the publication.
//
// What another process wrote is checked before it is used: an offset is held against the bounds of that process's arena, a stamp
// against the only values it can have. Memory is sealed against shrinking, and what is handed out has pages: a peer can send
// wrong data, but it cannot make this process fault.
//
// Nothing here has a name in a file system, knows a plan, gives up, or prints. Package core decides when to wait, for how long,
// and what an error means; it is the only caller, together with shm/fast, which holds the hot state of a communicator.
package shm
