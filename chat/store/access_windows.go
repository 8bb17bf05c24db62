package store

import "os"

// checkAccess returns an error if the process may not write a file. Folders are not checked.
func checkAccess(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
