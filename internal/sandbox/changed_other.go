//go:build !linux

package sandbox

import (
	"io/fs"
	"time"
)

// changed returns the modification time of a file.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }
