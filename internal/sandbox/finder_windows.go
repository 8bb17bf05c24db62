package sandbox

import (
	"io/fs"
	"os"
)

func openFolder(dir string) (*os.File, error) { return os.Open(dir) }

// ownedByUser returns false: Windows has no file modes that makeReadable could change.
func ownedByUser(fs.FileInfo) bool { return false }

func fileID(path string) string { return path }
