package links

// LateError is a connection that was not there when the limit passed.
type LateError struct{ Why string }

func (e *LateError) Error() string {
	return "there is no connection within the time allowed for init: " + e.Why
}

// Result is the ncclResult_t of the error.
func (e *LateError) Result() int { return timeout }

const timeout = 8 // ncclTimeout
