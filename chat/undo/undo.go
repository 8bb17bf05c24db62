// Package undo undoes the changes that tools and commands made to files.
//
// Before a tool changes a file, the old content is saved in esrp/artifact. The changes of a shell
// command are not known in advance, so the whole workspace is scanned before and after it
// (commands.go): the contents and permissions of the files, the symlinks and the folders that git does
// not ignore. Each workspace folder has a record of these scans (record.go). A scan reads only files
// that have changed since the last scan. It reads the ignore rules of the user's Git repository, but
// not its index or objects. It changes nothing in the repository, and runs no other programs.
//
// A rollback restores the content of a file only if no other program has changed the file since;
// otherwise it notifies the user. It moves a file or folder back even if the content has changed since,
// but not if there is something new at the old path. All changes during a command count as changes by
// the command, except those of other chats. A rollback cannot restore content that was too large to
// save, or that was deleted because of its age.
//
// Files are opened without following symlinks (internal/safeio): if a file, or a folder on its path,
// has been replaced with a symlink, it is not restored.
package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
)

// Options of Files.
type Options struct {
	Artifacts func() *artifact.Store // where the contents that tools replace are saved
	// Dir returns the folder of the records of commands, which is created with the first record.
	Dir        func() string
	OwnFolders []string // eca's own folders, which are never recorded
	Now        func() time.Time
	// Covers reports whether a call needs an undo point, because it runs a command without the
	// user's approval. An error tells why the workspace rule must not allow the command; the user
	// is then asked. If Covers is nil, no call needs an undo point.
	Covers func(tools.Call, tools.Plan) (bool, error)
}

// Files implements chat.Files.
type Files struct {
	opts Options

	mu      sync.Mutex // guards the fields below
	records map[string]*record
	running map[string]*runningCommand // running commands, by the names of their undo points
}

var _ chat.Files = (*Files)(nil)

// New returns Files.
func New(o Options) *Files {
	return &Files{opts: o, records: map[string]*record{}, running: map[string]*runningCommand{}}
}

// maxFile is the maximum size, in bytes, of a file whose content is saved.
const maxFile = 64 << 20

// Writing implements chat.Files: it saves the old content of a file that a tool is about to write.
func (f *Files) Writing(ctx context.Context, chatID, path string, content []byte) (event.FileChanged, error) {
	f.noteWrite(chatID, path)
	change := event.FileChanged{Path: path, After: &event.FileVersion{Hash: artifact.Hash(content)}}
	p, err := safeio.OpenEntry("", path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return change, nil
	}
	if err != nil {
		return change, err
	}
	defer p.Close()
	info, _, err := p.Stat()
	if err != nil || info == nil {
		return change, err
	}
	old, err := p.Read(maxFile)
	if err != nil {
		return change, err
	}
	change.Before = &event.FileVersion{Mode: uint32(info.Mode().Perm())}
	change.Before.Hash, err = f.opts.Artifacts().Put(ctx, old)
	return change, err
}

// restore undoes a tool's change. It returns an error, and does not change the file, if the content
// of the file has been changed since. It moves a moved file back even then.
func (f *Files) restore(ctx context.Context, c event.FileChanged) error {
	if c.MovedTo != "" {
		return moveBack(c)
	}
	p, err := safeio.OpenEntry("", c.Path, false)
	if errors.Is(err, fs.ErrNotExist) { // its folder is gone
		if c.Before == nil {
			return nil
		}
		return fmt.Errorf("%s was changed since", c.Path)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", c.Path, err)
	}
	defer p.Close()
	now, err := version(p)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", c.Path, err)
	case same(now, c.Before):
		return nil // the change was never made, or has been undone
	case !same(now, c.After):
		return fmt.Errorf("%s was changed since", c.Path)
	case c.Before == nil:
		return p.Remove()
	}
	old, err := f.opts.Artifacts().Get(ctx, c.Before.Hash)
	if err != nil {
		return fmt.Errorf("the old content of %s no longer exists: %w", c.Path, err)
	}
	unchanged := func() error {
		if now, err := version(p); err != nil || !same(now, c.After) {
			return errors.Join(errors.New("it has just been changed"), err)
		}
		return nil
	}
	if err := p.Replace(old, fs.FileMode(c.Before.Mode), unchanged); err != nil {
		return fmt.Errorf("%s cannot be written: %w", c.Path, err)
	}
	return nil
}

// moveBack undoes a move, if the moved file still exists and its old path is free.
func moveBack(c event.FileChanged) error {
	from, err := safeio.OpenEntry("", c.MovedTo, false)
	var moved fs.FileInfo
	if err == nil {
		defer from.Close()
		moved, _, err = from.Stat()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be reached: %w", c.MovedTo, err)
	}
	movedExists := moved != nil
	to, err := safeio.OpenEntry("", c.Path, movedExists)
	if err != nil && !movedExists && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s no longer exists", c.MovedTo)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", c.Path, err)
	}
	defer to.Close()
	atOldPath, _, err := to.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be reached: %w", c.Path, err)
	case !movedExists && atOldPath != nil:
		return nil // it was never moved, or has been moved back
	case !movedExists:
		return fmt.Errorf("%s no longer exists", c.MovedTo)
	case atOldPath != nil:
		return fmt.Errorf("%s cannot be moved back: there is a new %s", c.MovedTo, c.Path)
	}
	return safeio.Move(from, to)
}

// version returns the current version of a file, or nil if it does not exist.
func version(p safeio.Entry) (*event.FileVersion, error) {
	data, err := p.Read(maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nil means that the file does not exist
	}
	if err != nil {
		return nil, err
	}
	return &event.FileVersion{Hash: artifact.Hash(data)}, nil
}

func same(a, b *event.FileVersion) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Hash == b.Hash
}
