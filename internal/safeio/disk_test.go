package safeio

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// The error for a file that cannot be written names the state of the disk.
func TestUnwritable(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EROFS:          "cannot write /d/f: the file system is read-only; see `eca doctor`",
		syscall.EACCES:         "cannot write /d/f: permission denied; see `eca doctor`",
		syscall.ENOSPC:         "cannot write /d/f: no space left on device; see `eca doctor`",
		syscall.EDQUOT:         "cannot write /d/f: the disk quota is used up; see `eca doctor`",
		errors.New("whatever"): "cannot write /d/f: whatever",
	} {
		err := Unwritable("/d/f", &fs.PathError{Op: "open", Path: "/d/.f-123", Err: cause})
		if err == nil || err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%v: %v, want %s", cause, err, want)
		}
	}
	if err := Unwritable("/d/f", nil); err != nil {
		t.Error(err)
	}
}
