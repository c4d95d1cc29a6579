package links

// What is sent finds a connection, or asks for one and waits in its flow until the keeper has made it.

// needs is called from any thread when something is to be sent and there is no connection.
func (f *Far) needs() {
	if !f.wanted.Swap(true) {
		f.pool.hurry()
	}
}

// served forgets that a connection was wanted, as there is one, and reports whether there still is: who asks for the next when the last has
// just come to its end is not forgotten. Only the keeper makes connections.
func (f *Far) served() bool {
	wanted := f.wanted.Swap(false)
	if f.link.Open() {
		return true
	}
	if wanted {
		f.wanted.Store(true)
	}
	return false
}
