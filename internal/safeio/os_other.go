//go:build !unix

package safeio

import "os"

const nonBlocking = 0

// rename uses the paths of the folders: on this system, no process can replace an open folder.
func rename(from, to Entry) error { return os.Rename(from.path, to.path) }

// duplicate returns nil: the system has no paths of open files.
func duplicate(string) (*os.File, error) { return nil, nil }
