//go:build !unix

package safeio

import "os"

const noWait = 0

// rename uses the original paths of the folders: the system does not let an open folder be
// replaced.
func rename(from, to Entry) error { return os.Rename(from.path, to.path) }

// duplicate returns nil: the system has no paths of open files.
func duplicate(string) (*os.File, error) { return nil, nil }
