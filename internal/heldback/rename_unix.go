//go:build unix

package heldback

import (
	"os"

	"golang.org/x/sys/unix"
)

// rename renames within a file system.
func rename(from *os.Root, fromName string, to *os.Root, toName string) error {
	source, err := from.Open(".")
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := to.Open(".")
	if err != nil {
		return err
	}
	defer target.Close()
	return unix.Renameat(int(source.Fd()), fromName, int(target.Fd()), toName)
}
