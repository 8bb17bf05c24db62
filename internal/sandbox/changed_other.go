//go:build !linux

package sandbox

import (
	"io/fs"
	"time"
)

// changed returns when a file was last changed.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }
