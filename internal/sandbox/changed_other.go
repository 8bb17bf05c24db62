//go:build !linux

package sandbox

import (
	"io/fs"
	"time"
)

// changeTime returns the modification time of a file.
func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
