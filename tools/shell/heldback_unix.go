//go:build unix

package shell

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// renameBetween renames within a file system. The folders are opened first, so that links that
// appear meanwhile lead nowhere else.
func renameBetween(from *os.Root, fromName string, to *os.Root, toName string) error {
	old, err := from.Open(filepath.Dir(fromName))
	if err != nil {
		return err
	}
	defer old.Close()
	place, err := to.Open(filepath.Dir(toName))
	if err != nil {
		return err
	}
	defer place.Close()
	return unix.Renameat(int(old.Fd()), filepath.Base(fromName), int(place.Fd()), filepath.Base(toName))
}
