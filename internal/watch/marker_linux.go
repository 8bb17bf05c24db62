package watch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// eventsOrdered reports whether the events of all watched folders arrive in the order of the changes.
const eventsOrdered = true

// openUnnamed opens a new file without a name, and returns a path that refers to the file while it is
// open.
func openUnnamed() (*os.File, string, error) {
	file, err := openTmpfile()
	if err != nil { // not every file system supports that
		file, err = openUnlinked()
	}
	if err != nil {
		return nil, "", err
	}
	return file, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), nil
}

// openTmpfile creates a file that never has a name.
func openTmpfile() (*os.File, error) {
	fd, err := unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "marker"), nil
}

// openUnlinked creates a file and removes its name.
func openUnlinked() (*os.File, error) {
	file, err := os.CreateTemp("", ".eca-watch-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
