package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// changes serializes the changes of each file, so that concurrent edits of one file are both
// applied. Changes of different files do not wait for each other.
//
// The user's client may take seconds to save a file. Calls of the same chat wait for that. A call
// of another chat waits for lockWait and then writes to the disk without the lock.
type changes struct {
	mu    sync.Mutex // guards the fields below, and the fields of each file
	files map[string]*changingFile
}

// changingFile is a file that at least one call changes or waits to change.
type changingFile struct {
	lock     chan struct{} // contains one element while a call holds the lock
	chatID   string        // the chat of the call that holds the lock
	bypassed bool          // another chat wrote the file without the lock
	users    int           // calls that hold the lock or wait for it

	disk sync.Mutex // held while the disk is compared and written, but not during requests to a client
}

// lockWait is how long a call waits for another chat's change of the same file.
const lockWait = time.Second

func newChanges() *changes { return &changes{files: map[string]*changingFile{}} }

// lockFile waits for the lock of a file. ok is false if a call of another chat still holds it. The
// caller must call end.
func (c *changes) lockFile(ctx context.Context, chatID, path string) (f *changingFile, ok bool, end func(), err error) {
	key := workspace.Resolve(path)
	c.mu.Lock()
	f = c.files[key]
	if f == nil {
		f = &changingFile{lock: make(chan struct{}, 1)}
		c.files[key] = f
	}
	f.users++
	c.mu.Unlock()
	end = func() {
		if ok {
			<-f.lock
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.users--; f.users == 0 {
			delete(c.files, key)
		}
	}
	for {
		select {
		case f.lock <- struct{}{}:
			ok = true
			c.mu.Lock()
			defer c.mu.Unlock()
			f.chatID, f.bypassed = chatID, false
			return f, ok, end, nil
		case <-ctx.Done():
			end()
			return nil, false, nil, ctx.Err()
		case <-time.After(lockWait):
		}
		c.mu.Lock()
		other := f.chatID != chatID
		c.mu.Unlock()
		if other {
			return f, false, end, nil
		}
	}
}

// fileUpdate is the new state of a file.
type fileUpdate struct {
	before, after string
	note          string // for the call's result
}

var (
	errChanged = errors.New("the file was changed in the meantime: read it again")
	errUnsaved = errors.New("the file has unsaved changes in the editor, which did not save this change: ask the user to save or close the file")
	errSaved   = errors.New("the client has saved it")
)

// change replaces the text of a file, the first path of the plan, with the result of compute. If
// another process changes the file before it is written, compute is called again.
func (c *changes) change(ctx context.Context, call tools.Call, path string, compute func() (before, after string, err error)) (fileUpdate, error) {
	f, locked, end, err := c.lockFile(ctx, call.ChatID, path)
	if err != nil {
		return fileUpdate{}, err
	}
	defer end()
	if !locked { // the client is still saving another text of this file
		call.Save = nil
	}
	for {
		disk := diskText(call, path)
		before, after, err := compute()
		if err != nil {
			return fileUpdate{}, err
		}
		unsaved := before != disk && !workspace.IsBinary([]byte(disk))
		note, err := f.write(ctx, call, path, after, disk, unsaved)
		switch {
		case errors.Is(err, errChanged) && call.Save == nil:
			continue
		case err != nil:
			return fileUpdate{}, fmt.Errorf("could not write %s: %w", path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !locked {
			f.bypassed = true
		} else if f.bypassed {
			note += "\n[Another chat changed the file while the editor saved it: read it again.]"
		}
		return fileUpdate{before, after, note}, nil
	}
}

// write atomically writes content to path, creating folders as needed. A symlink is followed, and
// an existing file keeps its mode. The user's client replaces files that it has open; if it does
// not, the file is written to the disk, unless the user has unsaved changes. disk is the text on
// disk from which content was computed. note is that of announce.
func (f *changingFile) write(ctx context.Context, call tools.Call, path, content, disk string, unsaved bool) (note string, err error) {
	p, err := open(call, 0, path, true)
	if err != nil {
		return "", err
	}
	defer p.Close()
	announceChange := func() error {
		note, err = announce(ctx, call, func(l tools.FileLog) error { return l.Writing(ctx, p.Path(), []byte(content)) })
		return err
	}
	viaClient := call.Save != nil
	if viaClient {
		if err := announceChange(); err != nil {
			return note, err
		}
		if save(call, p, content) {
			return note, nil
		}
		announceChange = ctx.Err
	}
	f.disk.Lock()
	err = p.Replace([]byte(content), 0, func() error {
		switch now := readOrEmpty(p); {
		case viaClient && now == content:
			return errSaved
		case now != disk:
			return errChanged
		case unsaved:
			return errUnsaved
		}
		return announceChange()
	})
	f.disk.Unlock()
	switch {
	case errors.Is(err, errSaved):
		err = nil
	case err == nil && viaClient && call.Unsaved != nil:
		if text, ok := call.Unsaved(p.Path()); ok && withDiskLineEndings(text, content) != content {
			note += "\n[The editor did not save the change and still shows the old text: the change is only on disk.]"
		}
	}
	return note, err
}

// diskText returns the content of a file on the disk, regardless of the user's client; empty if it
// cannot be read.
func diskText(call tools.Call, path string) string {
	p, err := open(call, 0, path, false)
	if err != nil {
		return ""
	}
	defer p.Close()
	return readOrEmpty(p)
}

// beginMove locks two paths, in the same order for all calls to avoid deadlocks.
func (c *changes) beginMove(ctx context.Context, chatID, src, dst string) (end func(), err error) {
	paths := []string{workspace.Resolve(src), workspace.Resolve(dst)}
	slices.Sort(paths)
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, path := range slices.Compact(paths) {
		_, _, one, err := c.lockFile(ctx, chatID, path)
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, one)
	}
	return end, nil
}
