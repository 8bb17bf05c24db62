package permission

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/tools"
)

// permissionsFile is the file with the decisions for single workspaces and for everywhere. Several
// daemons share it: changes are made under a lock, and each read notices the changes of other processes.
// While the file cannot be read, eca asks as if it were empty, and no decision can be added.
type permissionsFile struct {
	file consent.File

	mu       sync.Mutex // guards the fields below
	lastInfo fs.FileInfo
	doc      document
}

// document is the format of the file.
type document struct {
	consent.Format
	Global     []string            `json:"global"`
	Workspaces map[string][]string `json:"workspaces"` // by folder, links resolved
}

// read returns the current content of the file.
func (k *permissionsFile) read() (document, error) {
	info, err := os.Lstat(k.file.Path)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.lastInfo, k.doc = nil, document{}
		return document{}, nil
	case err != nil:
		return document{}, err
	case k.lastInfo != nil && os.SameFile(info, k.lastInfo) && info.ModTime().Equal(k.lastInfo.ModTime()) && info.Size() == k.lastInfo.Size():
		return k.doc, nil
	}
	var doc document
	if err := k.file.Read(&doc); err != nil {
		return document{}, err
	}
	k.lastInfo, k.doc = info, doc
	return doc, nil
}

// scopeOfKey returns the scope for which a key is remembered in a workspace; Once if it is not.
func (k *permissionsFile) scopeOfKey(workspace, key string) tools.Scope {
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

// ofWorkspace returns the keys that are remembered for a workspace.
func (k *permissionsFile) ofWorkspace(workspace string) []string {
	if k == nil || workspace == "" {
		return nil
	}
	doc, err := k.read()
	if err != nil {
		return nil
	}
	return doc.Workspaces[workspace]
}

// add remembers keys for a workspace, or for all workspaces if workspace is empty.
func (k *permissionsFile) add(workspace string, keys []string) error {
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

// change rewrites the file under its lock.
func (k *permissionsFile) change(fn func(*document)) error {
	if k == nil {
		return errors.New("eca has no file for remembered decisions")
	}
	var doc document
	return k.file.Change(&doc, func() {
		if doc.Workspaces == nil {
			doc.Workspaces = map[string][]string{}
		}
		if doc.Global == nil {
			doc.Global = []string{}
		}
		fn(&doc)
	})
}

// Remembered is a decision that is remembered beyond a session.
type Remembered struct {
	Key       string // name of the tool; for commands also the program, or "in" and a folder
	Workspace string // empty: everywhere
	// Void is true if the key was made by an earlier version and has no effect any more, because the
	// program runs code from its arguments.
	Void bool
}

// isVoid reports whether a key has no effect any more; see Remembered.Void.
func isVoid(key string) bool {
	for _, tool := range []string{"shell_command ", "git "} {
		if command, ok := strings.CutPrefix(key, tools.Native+"__"+tool); ok {
			return !strings.HasPrefix(command, "in ") && !cmdline.IsKey(command)
		}
	}
	return false
}

// Kept returns the decisions that are remembered beyond the session.
func (m *Memory) Kept() ([]Remembered, error) {
	if m.file == nil {
		return nil, nil
	}
	doc, err := m.file.read()
	if err != nil {
		return nil, err
	}
	var out []Remembered
	for _, key := range doc.Global {
		out = append(out, Remembered{Key: key, Void: isVoid(key)})
	}
	for _, ws := range slices.Sorted(maps.Keys(doc.Workspaces)) {
		for _, key := range doc.Workspaces[ws] {
			out = append(out, Remembered{Key: key, Workspace: ws, Void: isVoid(key)})
		}
	}
	return out, nil
}

// Forget removes a key from the session, from the list of every workspace, and from the global list.
// existed reports whether the file had it.
func (m *Memory) Forget(key string) (existed bool, err error) {
	return m.forget(func(k string) bool { return k == key })
}

// ForgetServer removes all decisions about the tools of an MCP server, because another server may get
// its name.
func (m *Memory) ForgetServer(name string) (existed bool, err error) {
	return m.forget(func(k string) bool { return strings.HasPrefix(k, tools.FullName(name, "")) })
}

// forget removes the keys that match. existed reports whether the file had any.
func (m *Memory) forget(matches func(key string) bool) (existed bool, err error) {
	m.mu.Lock()
	maps.DeleteFunc(m.keys, func(key string, _ bool) bool { return matches(key) })
	m.mu.Unlock()
	drop := func(k string) bool {
		existed = existed || matches(k)
		return matches(k)
	}
	err = m.file.change(func(doc *document) {
		doc.Global = slices.DeleteFunc(slices.Clone(doc.Global), drop)
		for ws, list := range doc.Workspaces {
			if doc.Workspaces[ws] = slices.DeleteFunc(slices.Clone(list), drop); len(doc.Workspaces[ws]) == 0 {
				delete(doc.Workspaces, ws)
			}
		}
	})
	return existed, err
}
