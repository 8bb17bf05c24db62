//go:build unix

package store

import "golang.org/x/sys/unix"

// checkAccess returns an error unless the process may both read and write the file. It does not open the file,
// because closing it would release SQLite's locks.
func checkAccess(path string) error { return unix.Access(path, unix.R_OK|unix.W_OK) }
