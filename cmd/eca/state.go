package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/daemon/settings"
)

// checkState returns an error if eca cannot store chats and keys safely: the directory for them is
// unknown, is not a directory, cannot be read, or other users can access it. A missing directory is
// not an error.
func checkState(getenv func(string) string) error {
	if x := getenv("XDG_STATE_HOME"); x != "" && !filepath.IsAbs(x) {
		return fmt.Errorf("XDG_STATE_HOME must be an absolute path, not %q", x)
	}
	if _, err := os.UserHomeDir(); err != nil && getenv("XDG_STATE_HOME") == "" {
		return fmt.Errorf("there is no place for chats and keys: %w; set HOME, or set XDG_STATE_HOME to a directory of yours", err)
	}
	if home := getenv("HOME"); home != "" && !filepath.IsAbs(home) && getenv("XDG_STATE_HOME") == "" {
		return fmt.Errorf("HOME must be an absolute path, not %q", home)
	}
	dir := settings.StateDir(getenv)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // it is created when needed
	case err != nil:
		return fmt.Errorf("cannot use the state directory: %w; set XDG_STATE_HOME to a directory of yours", err)
	case !info.IsDir():
		return fmt.Errorf("the state directory %s is not a directory; set XDG_STATE_HOME to one of yours", dir)
	}
	return private(dir, info)
}
