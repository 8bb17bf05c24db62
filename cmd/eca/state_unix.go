//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private returns an error if a directory belongs to another user, if its owner cannot read it, or if
// others can access it.
func private(dir string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("the state directory %s belongs to another user (uid %d); set XDG_STATE_HOME to a directory of yours", dir, stat.Uid)
	}
	mode := info.Mode().Perm()
	if mode&0o500 != 0o500 {
		return fmt.Errorf("the state directory %s cannot be read (mode %04o): run `chmod 700 %s`, or set XDG_STATE_HOME to another directory", dir, mode, dir)
	}
	if mode&0o077 != 0 {
		return fmt.Errorf("other users can access the state directory %s (mode %04o), which contains chats and keys: run `chmod 700 %s`, or set XDG_STATE_HOME to another directory", dir, mode, dir)
	}
	return nil
}
