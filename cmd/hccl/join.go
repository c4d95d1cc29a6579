package main

import "os"

// How the ranks of a run become one communicator, and wait for each other.

// join says who these ranks are, takes the unique id from rank 0 and makes the communicators.
func (r *runner) join() error {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	for k := range r.held {
		f := &r.page.of[r.first+k]
		f.pid, f.local = int32(os.Getpid()), int32(r.first+k)
		if r.world != nil {
			f.local = int32(r.world.local*r.perProcess() + r.thread*r.held + k)
		}
		copy(f.host[:len(f.host)-1], host)
	}
	if r.first == 0 {
		if r.page.id, err = newUniqueID(); err != nil {
			return err
		}
	}
	if err = r.together(); err != nil {
		return err
	}
	r.comms, err = initRanks(r.held, r.ranks, r.page.id, r.first)
	if err == nil {
		err = r.prepareAlign()
	}
	return err
}

// together returns when all ranks have come, with what they have found.
func (r *runner) together() error {
	r.page.barrier(r.threads, r.processors)
	if r.hub == nil {
		return nil
	}
	if r.thread == 0 {
		if err := r.hub.share(r.page, r.perProcess()); err != nil {
			return err
		}
	}
	r.page.barrier(r.threads, r.processors)
	return nil
}

// prepareAlign makes the call after which ranks of several processes that do not share a page go on at the same time: an all-reduce
// of one number.
func (r *runner) prepareAlign() error {
	if r.hub == nil {
		return nil
	}
	b, err := buffer(16 * r.held)
	if err != nil {
		return err
	}
	var calls []call
	for k, c := range r.comms {
		calls = append(calls, call{id: callAllReduce, send: start(b[16*k:]), recv: start(b[16*k+8:]), count: 1, typ: 2, comm: c})
	}
	r.align = newProgram(calls, 1)
	return nil
}

// abreast is together, as closely as the ranks can be: some may have slept in the first barrier, none does for long in the second.
func (r *runner) abreast() error {
	if err := r.together(); err != nil {
		return err
	}
	if r.hub == nil {
		r.page.barrier(r.threads, r.processors)
		return nil
	}
	_, err := r.align.run(2, nil)
	return err
}
