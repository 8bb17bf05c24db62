//go:build unix

package store

import "golang.org/x/sys/unix"

// access returns an error if the process may not read and write a file. It does not open the file:
// closing it would release SQLite's locks.
func access(path string) error { return unix.Access(path, unix.R_OK|unix.W_OK) }
