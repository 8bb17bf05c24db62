package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// EditFile applies changes to a configuration file as edit does. If the file is missing, EditFile
// creates it and its folders, readable only by its owner; otherwise the file keeps its mode. The
// file is replaced atomically, and a link to it stays a link. Concurrent calls, even of several
// processes, wait for each other.
//
// A file that does not parse or is read-only is not changed: the error names it, with the line.
func EditFile(path string, changes ...Change) error {
	target, err := followLinks(path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	// If the system cannot lock here, an edit is still atomic, but one of two concurrent edits may be
	// lost.
	lock := fileLock(target)
	if lock.Lock() == nil {
		defer lock.Close()
	}
	mode := fs.FileMode(0o600)
	src, err := safeio.Read(target, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("edit configuration: %w", err)
	}
	if info, err := os.Stat(target); err == nil {
		mode = info.Mode().Perm()
	}
	out, err := edit(path, src, changes)
	switch {
	case err != nil:
		return err
	case bytes.Equal(out, src):
		return nil
	case mode&0o200 == 0:
		return fmt.Errorf("edit %s: %w: the file is read-only", path, fs.ErrPermission)
	}
	if err := safeio.Write(target, out, mode); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	return nil
}

// followLinks returns the target of a path, which need not exist.
func followLinks(path string) (string, error) {
	path, err := filepath.Abs(path)
	for range 40 { // the usual limit of operating systems
		if err != nil {
			return "", err
		}
		info, statErr := os.Lstat(path)
		if isLink := statErr == nil && info.Mode()&fs.ModeSymlink != 0; !isLink {
			return path, nil
		}
		var target string
		if target, err = os.Readlink(path); err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			path = target
			continue
		}
		// A target like ../x is relative to the real folder.
		dir, evalErr := filepath.EvalSymlinks(filepath.Dir(path))
		path, err = filepath.Join(dir, target), evalErr
	}
	return "", errors.New("too many links")
}

// fileLock returns the lock for edits of a file: the file's folder, which needs no extra file. On
// Windows, where folders cannot be locked, it is a file in the user's temporary folder.
func fileLock(target string) *flock.Flock {
	if runtime.GOOS != "windows" {
		return flock.New(filepath.Dir(target), flock.SetFlag(os.O_RDONLY))
	}
	sum := sha256.Sum256([]byte(target))
	return flock.New(filepath.Join(os.TempDir(), "eca-"+hex.EncodeToString(sum[:16])+".lock"))
}
