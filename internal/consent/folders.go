package consent

import (
	"path/filepath"
	"slices"
	"time"
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

// Folders are those that are trusted, by path, links resolved. A nil map trusts nothing.
type Folders map[string]Folder

// Agreed is a file as the user agreed to it: its sum, what the user was shown of it, and sums
// of its parts by their names. Sums are opaque here.
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
		Path: filepath.Join(dir, "trust.json"), What: "trusted folders", Lost: "until then no folder is trusted, afterwards you trust them again",
	}}
}

// Read returns the record as it is now. With an error, no folder is trusted.
func (s *FolderStore) Read() (Folders, error) {
	var r folderRecord
	if err := s.File.Read(&r); err != nil {
		return nil, err
	}
	return r.Folders, nil
}

// Trusts reports whether a file of a folder is trusted with a sum.
func (f Folders) Trusts(root, file, sum string) bool {
	return sum != "" && f[Resolve(root)].Files[name(root, file)] == sum
}

// maxText bounds a text that is kept.
const maxText = 64 << 10

// Shown returns what the user was shown of a file when it was trusted last; empty if it
// was not, or if that is not known.
func (f Folders) Shown(root, file string) string {
	return f[Resolve(root)].Texts[name(root, file)]
}

// Changes names the parts of a file that are not as they were when the file was trusted
// last. before is false if it never was; a record of an earlier version names no parts.
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

// Trust records files of a folder, beside what is trusted of it already.
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

// Revoke forgets a folder, and those below it. It returns those that were trusted.
func (s *FolderStore) Revoke(root string) (revoked []string, err error) {
	root = Resolve(root)
	var r folderRecord
	err = s.File.Change(&r, func() {
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

// name is how a file of a folder is recorded.
func name(root, file string) string {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		rel = file
	}
	return filepath.ToSlash(rel)
}

// Resolve returns a folder's path with links followed, up to where it exists: a folder is
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
