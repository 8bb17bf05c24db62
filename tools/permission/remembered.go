package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/atomicfile"
	"github.com/seed-dec29ce4/eca/tools"
)

// kept is the file of what outlives a process. Several daemons share it: changes are made
// under a lock, and a change of the file counts at the next look. A file that can not be
// used remembers nothing.
type kept struct {
	path string

	mu   sync.Mutex // guards what follows
	seen fs.FileInfo
	doc  document
}

// document is the format of the file.
type document struct {
	Version    int                 `json:"version"`
	Global     []string            `json:"global"`
	Workspaces map[string][]string `json:"workspaces"` // by folder, links resolved
}

const documentVersion = 1

// read returns what the file holds now.
func (k *kept) read() (document, error) {
	info, err := os.Lstat(k.path)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.seen, k.doc = nil, document{}
		return document{Version: documentVersion}, nil
	case err != nil:
		return document{}, err
	case k.seen != nil && os.SameFile(info, k.seen) && info.ModTime().Equal(k.seen.ModTime()) && info.Size() == k.seen.Size():
		return k.doc, nil
	}
	data, err := readConfig(k.path)
	var doc document
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err == nil && doc.Version != documentVersion {
		err = fmt.Errorf("its version is %d, not %d", doc.Version, documentVersion)
	}
	if err != nil {
		return document{}, fmt.Errorf("%s can not be used: %w", k.path, err)
	}
	k.seen, k.doc = info, doc
	return doc, nil
}

// remembers returns how far a key is remembered in a workspace.
func (k *kept) remembers(workspace, key string) tools.Scope {
	if k == nil {
		return tools.Once
	}
	doc, err := k.read()
	switch {
	case err != nil:
	case workspace != "" && slices.Contains(doc.Workspaces[workspace], key):
		return tools.ForWorkspace
	case slices.Contains(doc.Global, key):
		return tools.Everywhere
	}
	return tools.Once
}

// add remembers keys for a workspace; for all if it is empty.
func (k *kept) add(workspace string, keys []string) error {
	return k.change(func(doc *document) {
		list := &doc.Global
		if workspace != "" {
			list = new([]string)
			*list = doc.Workspaces[workspace]
		}
		for _, key := range keys {
			if !slices.Contains(*list, key) {
				*list = append(slices.Clone(*list), key)
			}
		}
		if workspace != "" {
			doc.Workspaces[workspace] = *list
		}
	})
}

// change rewrites the file while no other process does.
func (k *kept) change(fn func(*document)) error {
	if k == nil {
		return errors.New("there is no place to remember it")
	}
	const lockTime = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	lock := flock.New(k.path + ".lock")
	if ok, err := lock.TryLockContext(ctx, 10*time.Millisecond); !ok {
		return fmt.Errorf("%s is locked by another process: %w", lock.Path(), err)
	}
	defer lock.Close()
	doc, err := k.read()
	if err != nil {
		return err
	}
	doc.Workspaces = maps.Clone(doc.Workspaces)
	if doc.Workspaces == nil {
		doc.Workspaces = map[string][]string{}
	}
	if doc.Global == nil {
		doc.Global = []string{}
	}
	fn(&doc)
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(k.path, append(data, '\n'), 0o600)
}

// Remembered is one thing that is remembered beyond a session.
type Remembered struct {
	Key       string // tool, and for commands what they run
	Workspace string // empty: everywhere
}

// Kept lists what is remembered beyond the session.
func (m *Memory) Kept() ([]Remembered, error) {
	if m.kept == nil {
		return nil, nil
	}
	doc, err := m.kept.read()
	if err != nil {
		return nil, err
	}
	var out []Remembered
	for _, key := range doc.Global {
		out = append(out, Remembered{Key: key})
	}
	for _, ws := range slices.Sorted(maps.Keys(doc.Workspaces)) {
		for _, key := range doc.Workspaces[ws] {
			out = append(out, Remembered{Key: key, Workspace: ws})
		}
	}
	return out, nil
}

// Forget drops a key wherever it is kept. It reports whether it was.
func (m *Memory) Forget(key string) (existed bool, err error) {
	m.mu.Lock()
	delete(m.keys, key)
	m.mu.Unlock()
	drop := func(k string) bool {
		existed = existed || k == key
		return k == key
	}
	err = m.kept.change(func(doc *document) {
		doc.Global = slices.DeleteFunc(slices.Clone(doc.Global), drop)
		for ws, list := range doc.Workspaces {
			if doc.Workspaces[ws] = slices.DeleteFunc(slices.Clone(list), drop); len(doc.Workspaces[ws]) == 0 {
				delete(doc.Workspaces, ws)
			}
		}
	})
	return existed, err
}
