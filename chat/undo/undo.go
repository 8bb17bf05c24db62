// Package undo takes back what tools and commands did to files.
//
// Before a tool changes a file, the old content is kept in esrp/artifact. What a command
// changes is not known before it has run, so the whole workspace is looked at before and
// after it (commands.go): files that git does not ignore, with contents, permissions,
// links and folders, in a record per workspace folder (record.go). Only what changed since
// the last look is read. The repository of the user is neither read nor written, and no
// other program takes part.
//
// It restores only what eca or its command changed: a file that somebody else changed since
// is left alone, and the user sees a message. Other changes while a command runs count
// as the command's, but for what other chats do. Content that was not kept (too large, or
// collected since) cannot be restored.
//
// Files are reached by the way they had when they were changed (internal/safeio): where a
// folder on it, or the file, has become a link, nothing is restored.
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

// Options say where and when files are recorded.
type Options struct {
	Kept func() *artifact.Store // contents that tools replace; asked at each change
	// Dir returns the folder of the records of commands, which is created with the first.
	Dir func() string
	Own []string // folders of eca's own: never recorded
	Now func() time.Time
	// Covers says whether a call needs an undo point: it runs a command that nobody
	// approved. nil: none does.
	// An error says why such a command cannot run without a question.
	Covers func(tools.Call, tools.Plan) (bool, error)
}

// Files implements chat.Files.
type Files struct {
	o Options

	mu      sync.Mutex // guards the fields below
	records map[string]*record
	running map[string]*running // commands, by the names of their points
}

var _ chat.Files = (*Files)(nil)

// New returns Files.
func New(o Options) *Files {
	return &Files{o: o, records: map[string]*record{}, running: map[string]*running{}}
}

// maxFile bounds what is looked at of a file; nothing larger is kept.
const maxFile = 64 << 20

// Writing implements chat.Files.
func (f *Files) Writing(ctx context.Context, chatID, path string, content []byte) (event.FileChanged, error) {
	f.wrote(chatID, path)
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
	change.Before.Hash, err = f.o.Kept().Put(ctx, old)
	return change, err
}

// restore undoes a tool's change. It fails, and leaves the file as it is, if somebody else
// changed it since.
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
	old, err := f.o.Kept().Get(ctx, c.Before.Hash)
	if err != nil {
		return fmt.Errorf("the old content of %s no longer exists: %w", c.Path, err)
	}
	unchanged := func() error {
		if now, err := version(p); err != nil || !same(now, c.After) {
			return errors.Join(errors.New("it was changed meanwhile"), err)
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
	there := moved != nil
	to, err := safeio.OpenEntry("", c.Path, there)
	if err != nil && !there && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s no longer exists", c.MovedTo)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", c.Path, err)
	}
	defer to.Close()
	back, _, err := to.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be reached: %w", c.Path, err)
	case !there && back != nil:
		return nil // it was never moved, or has been moved back
	case !there:
		return fmt.Errorf("%s no longer exists", c.MovedTo)
	case back != nil:
		return fmt.Errorf("%s cannot be moved back: there is a new %s", c.MovedTo, c.Path)
	}
	return safeio.Move(from, to)
}

// version says what a file is now; or nil.
func version(p safeio.Entry) (*event.FileVersion, error) {
	data, err := p.Read(maxFile)
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
