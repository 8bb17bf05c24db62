//go:build unix

package safeio

import (
	"os"

	"golang.org/x/sys/unix"
)

// noWait makes opening a pipe return immediately, even if no process writes to it.
const noWait = unix.O_NONBLOCK

// rename moves between two open folders, even if these were renamed in the meantime.
func rename(from, to Entry) error {
	src, err := from.dir.Open(".")
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.dir.Open(".")
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := unix.Renameat(int(src.Fd()), from.name, int(dst.Fd()), to.name); err != nil {
		return &os.LinkError{Op: "rename", Old: from.path, New: to.path, Err: err}
	}
	return nil
}
