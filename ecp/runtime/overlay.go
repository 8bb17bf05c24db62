package runtime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// overlay copies the contents of a folder into another one, with symlinks as symlinks. It removes an
// existing file at the target before it writes, so it never writes through a symlink or into a hard
// link.
func overlay(from, to string) error {
	if info, err := os.Stat(from); err != nil {
		return err
	} else if !info.IsDir() {
		return errors.New("not a folder")
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	files, size := 0, int64(0)
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if files, size = files+1, size+info.Size(); files > maxFixtureFiles || size > maxFixtureBytes {
			return fmt.Errorf("it has more than %d files or %d MiB", maxFixtureFiles, maxFixtureBytes>>20)
		}
		if e.IsDir() {
			return realFolder(root, rel)
		}
		if err := root.RemoveAll(rel); err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return root.Symlink(link, rel)
		case info.Mode().IsRegular():
			return copyInto(root, path, rel, info.Mode().Perm()|0o600)
		}
		return nil // sockets and other special files are not copied
	})
}

// realFolder creates a folder if it does not exist. It replaces anything else, including a symlink to
// a folder.
func realFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = root.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.Mkdir(name, 0o755)
}

func copyInto(root *os.Root, from, name string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
