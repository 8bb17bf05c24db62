//go:build unix

package safeio

import (
	"os"

	"golang.org/x/sys/unix"
)

// noWait opens a pipe at once, though no process writes to it.
const noWait = unix.O_NONBLOCK

// rename moves between two folders that are held, whatever their names are by now.
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
