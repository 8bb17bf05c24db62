//go:build !unix

package permission

import "os"

// stateOf returns the state of a file. It follows symlinks.
func stateOf(path string) (fileState, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{modified: info.ModTime().UnixNano(), size: info.Size(), mode: info.Mode()}, nil
}
