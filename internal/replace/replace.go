// Package replace writes files all at once: who reads one while it is written has the old content or the new one.
package replace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// File gives a file new content. Only a regular file: writing to a pipe whose reader has gone would be the end of the program.
func File(name string, text []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
