package safeio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errIsFolder is the error for a folder in place of a file.
var errIsFolder = errors.New("it is a directory; name a file")

// CheckOutput fails if [WriteOutput] could not write a file that the user names. It changes no file,
// and does not open streams and devices, because that may block.
func CheckOutput(path string) error {
	stream, err := streamOutput(path)
	if stream || err != nil {
		return cannotWrite(path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(danglingTarget(path))
		if f, err = os.CreateTemp(dir, ".output-*"); err != nil {
			return cannotWrite(path, fmt.Errorf("%s: %w", dir, Cause(err)))
		}
		defer os.Remove(f.Name())
	}
	if err == nil {
		err = f.Close()
	}
	return cannotWrite(path, err)
}

// danglingTarget follows the symlinks of a path that leads to no file: WriteOutput creates the file at
// their end.
func danglingTarget(path string) string {
	for range maxLinks {
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return path
}

// WriteOutput writes a file that the user names, with a function that may be called again after it
// failed. Like the redirection of a shell, it follows symlinks, keeps the permissions of an existing
// file, and uses the umask for a new one. It appends to streams and devices, such as /dev/null. If it
// fails, it leaves no new file, and an existing file keeps its content, unless no other file can be
// created in its folder.
func WriteOutput(path string, write func(io.Writer) error) error {
	stream, err := streamOutput(path)
	if stream {
		err = writeStream(path, write)
	}
	if stream || err != nil {
		return cannotWrite(path, err)
	}
	return cannotWrite(path, replaceOutput(path, write))
}

// replaceOutput is WriteOutput for a path that is not that of a stream.
func replaceOutput(path string, write func(io.Writer) error) error {
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		err = writeTo(path, os.O_CREATE, func(io.Writer) error { return nil })
	}
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if err = WriteFrom(real, info.Mode().Perm(), write); errors.Is(err, fs.ErrPermission) {
		err = writeTo(real, os.O_TRUNC, write)
	}
	if err != nil && isNew {
		_ = os.Remove(real)
	}
	return err
}

func cannotWrite(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write %s: %w", path, Cause(err))
}

// streamOutput reports whether a path is that of a stream or a device, which cannot be replaced. It
// fails if there is something at the path to which nothing should be written: a folder, or a named
// pipe, which blocks until another program reads it.
func streamOutput(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // the file may not exist yet, and its writer reports other errors
	case IsStream(path):
		return true, nil
	case info.IsDir():
		return false, errIsFolder
	case !info.Mode().IsRegular():
		return false, ErrNotRegular
	}
	return false, nil
}

// writeStream writes to a stream or a device. If the process has it open, writeStream does not open it
// again: separate offsets would let writers overwrite each other.
func writeStream(path string, write func(io.Writer) error) error {
	f, err := duplicate(path)
	if err != nil {
		return err
	}
	if f == nil {
		return writeTo(path, os.O_APPEND, write)
	}
	return errors.Join(write(f), f.Close())
}

func writeTo(path string, flag int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
