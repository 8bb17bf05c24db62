// Package undo takes back what tools did to files.
//
// Before a change it keeps the old content in esrp/artifact, so that the change can be
// undone after a restart too. It restores only what eca changed: a file that somebody
// else changed since is left alone, with an error that says so. Content that was not
// kept (too large, or collected since) can not be restored. What commands do to files is
// not known here.
package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/internal/atomicfile"
)

// Files implements chat.Files.
type Files struct{ kept func() *artifact.Store }

var _ chat.Files = (*Files)(nil)

// New returns Files that keep contents in a store, which is asked for at each change.
func New(store func() *artifact.Store) *Files { return &Files{store} }

// Writing implements chat.Files.
func (f *Files) Writing(ctx context.Context, path string, content []byte) (event.FileChanged, error) {
	change := event.FileChanged{Path: path, After: &event.FileVersion{Hash: artifact.Hash(content)}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return change, nil
	}
	if err != nil {
		return change, err
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return change, err
	}
	change.Before = &event.FileVersion{Mode: uint32(info.Mode().Perm())}
	change.Before.Hash, err = f.kept().Put(ctx, old)
	return change, err
}

// Restore implements chat.Files.
func (f *Files) Restore(ctx context.Context, c event.FileChanged) error {
	if c.MovedTo != "" {
		return moveBack(c)
	}
	now, err := version(c.Path)
	switch {
	case err != nil:
		return fmt.Errorf("%s can not be read: %w", c.Path, err)
	case same(now, c.Before):
		return nil // the change was never made, or has been undone
	case !same(now, c.After):
		return fmt.Errorf("%s was changed since", c.Path)
	case c.Before == nil:
		return os.Remove(c.Path)
	}
	old, err := f.kept().Get(ctx, c.Before.Hash)
	if err != nil {
		return fmt.Errorf("the old content of %s is not there any more: %w", c.Path, err)
	}
	if err := atomicfile.Write(c.Path, old, fs.FileMode(c.Before.Mode)); err != nil {
		return fmt.Errorf("%s can not be written: %w", c.Path, err)
	}
	return nil
}

// moveBack undoes a move, if what was moved is still there and its old place free.
func moveBack(c event.FileChanged) error {
	if _, err := os.Lstat(c.MovedTo); err != nil {
		if _, err := os.Lstat(c.Path); err == nil {
			return nil // it was never moved, or has been moved back
		}
		return fmt.Errorf("%s is not there any more", c.MovedTo)
	}
	if _, err := os.Lstat(c.Path); err == nil {
		return fmt.Errorf("%s can not be moved back: there is a new %s", c.MovedTo, c.Path)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return err
	}
	return os.Rename(c.MovedTo, c.Path)
}

// version says what a file is now; nil if there is none.
func version(path string) (*event.FileVersion, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no file is an answer
	}
	if err != nil {
		return nil, err
	}
	return &event.FileVersion{Hash: artifact.Hash(data)}, nil
}

func same(a, b *event.FileVersion) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Hash == b.Hash
}
