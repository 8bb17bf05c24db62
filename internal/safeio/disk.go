package safeio

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// NoSpace is the DiskCause of a disk that is full.
const NoSpace = "no space left on device"

// DiskCause is the reason in an error of the system why a disk refuses to be written; empty if the
// error has another reason.
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

// Unwritable is the error of a file that cannot be written, with its path, the reason and, if the
// disk is the reason, where the user finds help. It is nil without err.
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
