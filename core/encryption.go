package core

import (
	"bytes"
	"io"
	"sync"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/internal/regular"
	"hccl.dev/hccl/internal/secure"
)

// GivenKey, if set before the first communicator, returns the key that the program has given by a call, nil where it gave none. From
// then on the program cannot give another one.
var GivenKey func() []byte

// encryption is what this process does about its connections. It is decided when the first communicator of several ranks begins, and
// holds for the life of the process: connections are made at any time, and their ends must have the same key.
var encryption struct {
	mu      sync.Mutex
	decided bool        // guarded by mu
	key     *secure.Key // nil: in clear; guarded by mu
}

// configureBoot tells package boot the settings, and the key if connections are needed. It holds the lock all the while, so that nobody
// who needs none takes back a key that another has just decided on.
func configureBoot(v *params.Values, connects bool) error {
	encryption.mu.Lock()
	defer encryption.mu.Unlock()
	key, err := encryptionKey(v, connects)
	if err != nil {
		return err
	}
	boot.Configure(boot.Settings{Interfaces: v.SocketIfname, Family: v.SocketFamily, Ports: v.PortRange.String(), Library: Library, Key: key})
	return nil
}

// encryptionKey returns the key for all connections of this process, nil for none. A key that cannot be used is an error, never none.
// decide is for who needs connections: without it there is no key until somebody did. encryption.mu is held.
func encryptionKey(v *params.Values, decide bool) (*secure.Key, error) {
	if encryption.decided || !decide {
		return encryption.key, nil
	}
	psk, from, err := preSharedKey(v.EncryptionKeyFile)
	if err != nil {
		return nil, err
	}
	if psk != nil {
		encryption.key, err = secure.NewKey(psk)
		clear(psk)
		if err != nil {
			return nil, failf(InvalidUsage, "the encryption key of %s cannot be used: %w", from, err)
		}
		log.Info(log.Net, "connections are encrypted with the key of %s (%s)", from, secure.Text)
	}
	encryption.decided = true
	return encryption.key, nil
}

// preSharedKey returns the key's bytes, nil where there is none, and who gave it. A call counts before the setting.
func preSharedKey(file string) (psk []byte, from string, err error) {
	if GivenKey != nil {
		if psk = GivenKey(); psk != nil {
			return psk, "ncclSetEncryption", nil
		}
	}
	if file == "" {
		return nil, "", nil
	}
	from = keyFile + "=" + file
	psk, err = readKey(file)
	if err != nil {
		return nil, from, failf(InvalidUsage, "%s: %w", from, err)
	}
	return psk, from, nil
}

const keyFile = "HCCL_ENCRYPTION_KEY_FILE"

// readKey reads a key from a file that nobody else can read. A line's end behind it is no part of it. Errors never quote the file.
func readKey(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0:
		return nil, failf(InvalidUsage, "others than its owner may use the file (mode %04o), so its key is no secret: make a new key, and "+
			"chmod 600 the file", info.Mode().Perm())
	case info.Size() > secure.MaxKey+2:
		return nil, failf(InvalidUsage, "the file has %d bytes, and a key has %d to %d", info.Size(), secure.MinKey, secure.MaxKey)
	}
	b := make([]byte, secure.MaxKey+2)
	n, err := io.ReadFull(f, b)
	if err != io.ErrUnexpectedEOF && err != io.EOF && err != nil {
		return nil, err
	}
	psk := bytes.TrimSuffix(bytes.TrimSuffix(b[:n], []byte("\n")), []byte("\r"))
	if len(psk) < secure.MinKey {
		return nil, failf(InvalidUsage, "the file has a key of %d bytes, and one has at least %d: take more from a source of random bytes, "+
			"such as openssl rand -base64 32", len(psk), secure.MinKey)
	}
	return psk, nil
}
