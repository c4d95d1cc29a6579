// Package replace writes files all at once: who reads one while it is written has the old content or the new one.
package replace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File gives a file new content. Only a regular file: writing to a pipe whose reader has gone would be the end of the program. Errors
// leave out the file's name, which the caller says, and that of the temporary one, which nobody knows.
func File(name string, text []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return reason(err)
	}
	_, err = f.Write(text)
	err = cmp.Or(err, f.Chmod(0o644))
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return reason(err)
}

// reason is an error without the names of files.
func reason(err error) error {
	var at *fs.PathError
	var between *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &between):
		return between.Err
	}
	return err
}
