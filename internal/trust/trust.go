// Package trust keeps which files of which workspace folders the user trusts, by their
// content.
//
// The record is one file, trust.json, for the user alone; several processes may use it at
// the same time. It guarantees that nothing is trusted that was not recorded: a record
// that can not be read trusts nothing, and says why. What needs trust, and what follows
// from it, is decided elsewhere; sums are opaque here.
package trust

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/internal/lockedfile"
)

// Folder is a folder that is trusted.
type Folder struct {
	// Files are the sums of what is trusted, by path from the folder on, with slashes. A
	// file that leads elsewhere is recorded where it lies.
	Files map[string]string `json:"files"`
	Since time.Time         `json:"since"` // the last time the user said so
	// Texts are what the user was shown of them, to show what changed since.
	Texts map[string]string `json:"texts,omitempty"`
	// Parts are sums of the parts of what is trusted, to name those that changed since.
	Parts map[string]map[string]string `json:"parts,omitempty"`
}

// Shown is what the user was shown of a file, and the sums of its parts by their names.
type Shown struct {
	Text  string
	Parts map[string]string
}

// record is the content of the file.
type record struct {
	Version int               `json:"version"`
	Folders map[string]Folder `json:"folders"` // by path, links resolved
}

const version = 1

// Store is the record of one user.
type Store struct {
	file lockedfile.File
	now  func() time.Time
}

// New returns the store in a folder, which is created when something is recorded.
func New(dir string, now func() time.Time) *Store {
	return &Store{file: lockedfile.New(filepath.Join(dir, "trust.json"), version), now: now}
}

// Path returns the file, which need not exist.
func (s *Store) Path() string { return s.file.Path() }

// View is the record at one moment. The zero View trusts nothing.
type View struct{ folders map[string]Folder }

// Read returns the record as it is now. With an error, the View trusts nothing.
func (s *Store) Read() (View, error) {
	r, err := s.read()
	return View{r.Folders}, err
}

func (s *Store) read() (record, error) {
	var r record
	if err := s.file.Read(&r); err != nil {
		return record{}, fmt.Errorf("the record of trusted folders can not be read, so none is trusted: %w", err)
	}
	return r, nil
}

// Trusts says whether a file of a folder is trusted with a sum.
func (v View) Trusts(root, file, sum string) bool {
	f, ok := v.folders[Resolve(root)]
	return ok && sum != "" && f.Files[name(root, file)] == sum
}

// Folders returns what is trusted, by the folders' paths.
func (v View) Folders() map[string]Folder { return maps.Clone(v.folders) }

// maxText bounds a text that is kept.
const maxText = 64 << 10

// Shown returns what the user was shown of a file when it was trusted last; empty if it
// was not, or if that is not known.
func (v View) Shown(root, file string) string {
	return v.folders[Resolve(root)].Texts[name(root, file)]
}

// Changes names the parts of a file that are not as they were when the file was trusted
// last. before is false if it never was; a record of an earlier version names no parts.
func (v View) Changes(root, file string, parts map[string]string) (changed []string, before bool) {
	f := v.folders[Resolve(root)]
	if _, before = f.Files[name(root, file)]; !before {
		return nil, false
	}
	known := f.Parts[name(root, file)]
	if known == nil {
		return nil, true
	}
	for part, sum := range parts {
		switch last, ok := known[part]; {
		case !ok:
			changed = append(changed, part+" is new")
		case last != sum:
			changed = append(changed, part+" changed")
		}
	}
	for part := range known {
		if _, still := parts[part]; !still {
			changed = append(changed, part+" is gone")
		}
	}
	slices.Sort(changed)
	return changed, true
}

// Trust records sums of files of a folder, and what the user was shown of them, beside what
// is trusted of it already.
func (s *Store) Trust(root string, sums map[string]string, shown map[string]Shown) error {
	return s.change(func(r *record) {
		f := r.Folders[Resolve(root)]
		files := maps.Clone(f.Files)
		if files == nil {
			files = map[string]string{}
		}
		for file, sum := range sums {
			files[name(root, file)] = sum
		}
		texts, parts := maps.Clone(f.Texts), maps.Clone(f.Parts)
		if texts == nil {
			texts = map[string]string{}
		}
		if parts == nil {
			parts = map[string]map[string]string{}
		}
		for file, s := range shown {
			delete(texts, name(root, file))
			if len(s.Text) <= maxText {
				texts[name(root, file)] = s.Text
			}
			parts[name(root, file)] = s.Parts
		}
		r.Folders[Resolve(root)] = Folder{Files: files, Since: s.now().UTC().Truncate(time.Second), Texts: texts, Parts: parts}
	})
}

// Revoke forgets a folder, and those below it. It returns those that were trusted.
func (s *Store) Revoke(root string) (revoked []string, err error) {
	root = Resolve(root)
	err = s.change(func(r *record) {
		for folder := range r.Folders {
			if rel, err := filepath.Rel(root, folder); err == nil && filepath.IsLocal(rel) {
				delete(r.Folders, folder)
				revoked = append(revoked, folder)
			}
		}
	})
	slices.Sort(revoked)
	return revoked, err
}

// change changes the record, alone among all processes. One that can not be read is not
// overwritten.
func (s *Store) change(fn func(*record)) error {
	var r record
	err := s.file.Change(&r, func() {
		r.Version = version
		if r.Folders == nil {
			r.Folders = map[string]Folder{}
		}
		fn(&r)
	})
	if err != nil {
		return fmt.Errorf("the record of trusted folders is as it was: %w", err)
	}
	return nil
}

// name is how a file of a folder is recorded.
func name(root, file string) string {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		rel = file
	}
	return filepath.ToSlash(rel)
}

// Resolve returns a folder's path with links followed, as far as it exists: a folder is
// the same however it is reached.
func Resolve(root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return root
}
