//go:build unix

package permission

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// stateOf returns the state of a file, or an error without its path. It follows symlinks. It is faster
// than os.Stat, because judging a command needs one call for each folder of PATH.
func stateOf(path string) (fileState, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	for errors.Is(err, unix.EINTR) {
		err = unix.Stat(path, &st)
	}
	if err != nil {
		return fileState{}, err
	}
	mode := fs.FileMode(st.Mode & 0o7777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	default:
		mode |= fs.ModeIrregular
	}
	return fileState{uint64(st.Dev), st.Ino, st.Mtim.Nano(), st.Size, mode}, nil //nolint:unconvert // differs by system
}
