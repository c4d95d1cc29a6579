package secure

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

var (
	errOther   = errors.New("it has another encryption key")
	errRefuses = errors.New("it refuses the handshake")
	errSecret  = errors.New("it has the encryption key, but not the secret of the communicator")
	errEnded   = errors.New("the handshake was given up")
)

// OtherKey reports whether a handshake failed because the two ends have different keys.
func OtherKey(err error) bool { return errors.Is(err, errOther) }

// A TLS record: type, version, length (2 bytes, big-endian), and so many bytes.
const (
	headSize            = 5
	firstType, lastType = 20, 23
	maxRecord           = 1<<14 + 256
)

// Handshake is TLS 1.3 without a socket: its owner hands it what the other end sent, record by record, and sends what it has to
// say. After the handshake proper both ends exchange their words in it, once, and go on with the Session.
//
// crypto/tls wants to block, so it has a goroutine; that one and the owner take turns, and none ever runs beside the other.
type Handshake struct {
	in      chan []byte   // a record for the goroutine; closed by Close
	back    chan struct{} // the goroutine has stopped for a record, or for good
	out     []byte        // what it has to say
	ended   bool
	err     error
	session *Session
}

// Dial begins as the one who connected: words is what to say under protection, and fits judges the n bytes that come back.
func (k *Key) Dial(words []byte, n int, fits func(answer []byte) bool) *Handshake {
	config := k.config(&k.dialer, &k.host)
	config.InsecureSkipVerify = true // of names and issuers, of which there are none: pinned looks at the key
	return start(func(c *tls.Conn) error {
		if _, err := c.Write(words); err != nil {
			return err
		}
		answer := make([]byte, n)
		if _, err := io.ReadFull(c, answer); err != nil {
			return err
		}
		if !fits(answer) {
			return errSecret
		}
		return nil
	}, func(end net.Conn) *tls.Conn { return tls.Client(end, config) }, "to the host", "to the dialer")
}

// Host begins as the one who listened: answer is given the n bytes that the dialer says and returns what to say then, nil to hang up.
func (k *Key) Host(n int, answer func(words []byte) []byte) *Handshake {
	config := k.config(&k.host, &k.dialer)
	config.ClientAuth = tls.RequireAnyClientCert // and pinned looks at its key
	return start(func(c *tls.Conn) error {
		words := make([]byte, n)
		if _, err := io.ReadFull(c, words); err != nil {
			return err
		}
		b := answer(words)
		if b == nil {
			return errSecret
		}
		_, err := c.Write(b)
		return err
	}, func(end net.Conn) *tls.Conn { return tls.Server(end, config) }, "to the dialer", "to the host")
}

func (k *Key) config(own, other *identity) *tls.Config {
	pinned := func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 1 && other.public.Equal(s.PeerCertificates[0].PublicKey) {
			return nil
		}
		return errOther
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own.cert}, VerifyConnection: pinned,
		SessionTicketsDisabled: true}
}

// start runs talk until it wants to hear something. out and in name the directions.
func start(talk func(*tls.Conn) error, open func(net.Conn) *tls.Conn, out, in string) *Handshake {
	h := &Handshake{in: make(chan []byte), back: make(chan struct{})}
	go func() {
		c := open(&end{h: h})
		err := talk(c)
		if err == nil {
			h.session, err = newSession(c, out, in)
		}
		h.ended, h.err = true, meaning(err)
		h.back <- struct{}{}
	}()
	<-h.back
	return h
}

// meaning turns an alert of the other end into what it says of it.
func meaning(err error) error {
	var alert *net.OpError
	switch {
	case !errors.As(err, &alert) || alert.Op != "remote error":
		return err
	case alert.Err.Error() == tls.AlertError(badCertificate).Error():
		return errOther
	}
	return fmt.Errorf("%w: %w", errRefuses, alert.Err)
}

const badCertificate = 42 // RFC 8446, 6.2: what crypto/tls says where VerifyConnection fails

// Want is how many bytes the record has whose beginning is given, as far as that tells; ok is false where it is none.
func Want(record []byte) (n int, ok bool) {
	switch {
	case len(record) > 0 && (record[0] < firstType || record[0] > lastType), len(record) > 1 && record[1] != 3:
		return 0, false
	case len(record) < headSize:
		return headSize, true
	}
	n = int(binary.BigEndian.Uint16(record[3:]))
	return headSize + n, n <= maxRecord
}

// Feed goes on with a whole record of the other end.
func (h *Handshake) Feed(record []byte) {
	if !h.ended {
		h.in <- record
		<-h.back
	}
}

// Say takes what is to be sent, also when the handshake has failed: the other end may hear why.
func (h *Handshake) Say() []byte {
	b := h.out
	h.out = nil
	return b
}

// Done returns the session, or why there is none; nothing of both while the handshake goes on.
func (h *Handshake) Done() (*Session, error) { return h.session, h.err }

// Close ends the goroutine.
func (h *Handshake) Close() {
	if !h.ended {
		close(h.in)
		<-h.back
	}
}

// end is the goroutine's side: what crypto/tls takes for a connection. net.Conn's other methods are not called.
type end struct {
	net.Conn
	h      *Handshake
	unread []byte
}

// Read waits for the next record where nothing is left of the last one.
func (e *end) Read(b []byte) (int, error) {
	if len(e.unread) == 0 {
		e.h.back <- struct{}{}
		record, ok := <-e.h.in
		if !ok {
			return 0, errEnded
		}
		e.unread = record
	}
	n := copy(b, e.unread)
	e.unread = e.unread[n:]
	return n, nil
}

// Write keeps b for the owner.
func (e *end) Write(b []byte) (int, error) {
	e.h.out = append(e.h.out, b...)
	return len(b), nil
}

// SetWriteDeadline bounds nothing: Write does not wait.
func (e *end) SetWriteDeadline(time.Time) error { return nil }
