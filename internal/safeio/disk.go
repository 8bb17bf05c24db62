package safeio

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// NoSpace is what DiskCause returns for a full disk.
const NoSpace = "no space left on device"

// DiskCause returns why the disk refused a write, in words for the user; empty if the error has
// another cause.
func DiskCause(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return NoSpace
	case errors.Is(err, syscall.EDQUOT):
		return "the disk quota is used up"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return ""
}

// Unwritable wraps the error of a file that cannot be written with its path, the cause and, if the
// disk is the cause, a pointer to eca doctor. It returns nil if err is nil.
func Unwritable(path string, err error) error {
	if err == nil {
		return nil
	}
	if cause := DiskCause(err); cause != "" {
		return &unwritableError{fmt.Sprintf("cannot write %s: %s; see `eca doctor`", path, cause), err}
	}
	return fmt.Errorf("cannot write %s: %w", path, Cause(err))
}

type unwritableError struct {
	text  string
	cause error
}

func (e *unwritableError) Error() string { return e.text }
func (e *unwritableError) Unwrap() error { return e.cause }
