//go:build !linux && !darwin

package undo

import "io/fs"

// identity returns nothing: size and time of the content have to do.
func identity(fs.FileInfo) (inode uint64, changed int64) { return 0, 0 }
