//go:build !unix

package safeio

import "os"

const noWait = 0

// rename moves by the names that the folders had: the system holds a folder that is open, so
// that it is not replaced meanwhile.
func rename(from, to Entry) error { return os.Rename(from.path, to.path) }
