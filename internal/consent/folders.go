package consent

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Folder is a trusted folder.
type Folder struct {
	// Files are the hashes of the trusted files, by path relative to the folder, with slashes. A
	// file that is a symlink out of the folder is recorded with its real path.
	Files map[string]string `json:"files"`
	Since time.Time         `json:"since"` // when the user last confirmed it
	// Texts are the texts that were shown to the user, to show what has changed since.
	Texts map[string]string `json:"texts,omitempty"`
	// Parts are hashes of the parts of the files, to name those that have changed since.
	Parts map[string]map[string]string `json:"parts,omitempty"`
}

// Folders are the trusted folders, by resolved path. A nil map trusts nothing.
type Folders map[string]Folder

// Agreed is a file that the user agreed to: its hash, the text that was shown, and hashes of its
// parts by name. This package does not interpret the hashes.
type Agreed struct {
	Sum   string
	Text  string
	Parts map[string]string
}

type folderRecord struct {
	Format
	Folders Folders `json:"folders"`
}

// FolderStore is the record of one user.
type FolderStore struct {
	File File
	now  func() time.Time
}

// NewFolders returns the store in a folder, which is created when something is recorded.
func NewFolders(dir string, now func() time.Time) *FolderStore {
	return &FolderStore{now: now, File: File{
		Path: filepath.Join(dir, "trust.json"), What: "trusted folders", Lost: "until then no folder is trusted; afterwards you can trust them again",
	}}
}

// Read returns the current record. With an error, no folder is trusted.
func (s *FolderStore) Read() (Folders, error) {
	var r folderRecord
	if err := s.File.Read(&r); err != nil {
		return nil, err
	}
	return r.Folders, nil
}

// Trusts reports whether a file in a folder is trusted with the given hash.
func (f Folders) Trusts(root, file, sum string) bool {
	return sum != "" && f[Resolve(root)].Files[name(root, file)] == sum
}

// maxText is the longest text that is stored, in bytes.
const maxText = 64 << 10

// Shown returns the text of a file that was shown to the user when it was last trusted; empty if it
// was never trusted, or if the text is unknown.
func (f Folders) Shown(root, file string) string {
	return f[Resolve(root)].Texts[name(root, file)]
}

// Changes names the parts of a file that differ from when it was last trusted. before is false if
// the file was never trusted. For a record of an earlier version, Changes names no parts.
func (f Folders) Changes(root, file string, parts map[string]string) (changed []string, before bool) {
	folder := f[Resolve(root)]
	if _, before = folder.Files[name(root, file)]; !before {
		return nil, false
	}
	known := folder.Parts[name(root, file)]
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

// Trust records files of a folder as trusted, in addition to those already recorded.
func (s *FolderStore) Trust(root string, files map[string]Agreed) error {
	var r folderRecord
	return s.File.Change(&r, func() {
		f := r.Folders[Resolve(root)]
		f.Since = s.now().UTC().Truncate(time.Second)
		for file, agreed := range files {
			file = name(root, file)
			setEntry(&f.Files, file, agreed.Sum)
			setEntry(&f.Parts, file, agreed.Parts)
			delete(f.Texts, file)
			if len(agreed.Text) <= maxText {
				setEntry(&f.Texts, file, agreed.Text)
			}
		}
		setEntry(&r.Folders, Resolve(root), f)
	})
}

// Revoke removes a folder and its subfolders, and returns those that were trusted.
func (s *FolderStore) Revoke(root string) (revoked []string, err error) {
	root = Resolve(root)
	var r folderRecord
	err = s.File.Change(&r, func() {
		for folder := range r.Folders {
			if safeio.Within(root, folder) {
				delete(r.Folders, folder)
				revoked = append(revoked, folder)
			}
		}
	})
	slices.Sort(revoked)
	return revoked, err
}

// name returns the key under which a file of a folder is recorded.
func name(root, file string) string {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		rel = file
	}
	return filepath.ToSlash(rel)
}

// Resolve resolves the symlinks in the longest existing part of a path, so that a folder has the
// same record whatever path leads to it.
func Resolve(root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return root
}
