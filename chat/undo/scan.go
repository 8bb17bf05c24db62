package undo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/internal/ignore"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Kinds of entries.
const (
	kindFile = iota + 1
	kindLink
	kindFolder
	kindSpecial // a pipe or device; never restored
)

// entry describes a file, symlink or folder. Its fields are stored.
type entry struct {
	Kind int
	Mode fs.FileMode // permissions; not set for symlinks
	Link fileName    // target of a symlink
	Hash string      // hash of a file's content; empty if the content is not saved

	// If these differ, the file has changed since it was read.
	Size, Modified, Changed int64
	Inode                   uint64
	Recent                  bool // it was read so soon after a change that the next change may not change these times
}

// same reports whether two entries are equal in everything that a rollback restores.
func (e *entry) same(other *entry) bool {
	if e == nil || other == nil {
		return e == other
	}
	if e.Kind != other.Kind || e.Mode != other.Mode || e.Link != other.Link {
		return false
	}
	if e.Kind == kindFile && (e.Hash == "" || other.Hash == "") {
		return e.Size == other.Size && e.Modified == other.Modified
	}
	return e.Hash == other.Hash
}

// unchanged reports whether a file has not changed, so that it need not be read again.
func (e *entry) unchanged(now *entry) bool {
	return e.Kind == kindFile && now.Kind == kindFile && !e.Recent && e.Size == now.Size && e.Modified == now.Modified && e.Changed == now.Changed && e.Inode == now.Inode
}

// describe returns an entry for the result of Lstat, without a symlink's target or a file's hash.
func describe(info fs.FileInfo) entry {
	e := entry{Mode: info.Mode().Perm(), Size: info.Size(), Modified: info.ModTime().UnixNano()}
	e.Inode, e.Changed = identity(info)
	switch mode := info.Mode(); {
	case mode.IsRegular():
		e.Kind = kindFile
	case mode.IsDir():
		e = entry{Kind: kindFolder, Mode: e.Mode}
	case mode&fs.ModeSymlink != 0:
		e = entry{Kind: kindLink}
	default:
		e = entry{Kind: kindSpecial}
	}
	return e
}

// Limits of a workspace folder.
const (
	maxFiles, maxBytes = 50_000, 2 << 30 // in a larger folder, only small files are saved
	maxSmall           = 1 << 20         // size of such a small file
	maxSmallBytes      = 1 << 30         // total size of such small files
	maxEntries         = 500_000         // a folder with more entries is not recorded
	maxDepth           = 1000
)

// recent reports whether the last change of a file is so new that another change may not change its
// times. Some file systems have coarse timestamps.
func (e *entry) recent(now time.Time) bool {
	const fine, coarse = 50 * time.Millisecond, 2 * time.Second
	last := max(e.Modified, e.Changed)
	age := now.Sub(time.Unix(0, last))
	if last%int64(time.Second) != 0 {
		return age < fine
	}
	return age < coarse
}

// scan lists and reads the contents of a workspace folder.
type scan struct {
	ctx        context.Context
	root       *os.Root
	path       string   // path of root, symlinks resolved
	ownFolders []string // eca's own folders, which the scan omits
	files      map[string]*entry
	bytes      int64

	ignored   bool     // something was omitted because git ignores it
	uncovered []string // descriptions of what is not covered
}

// list fills files with the entries of the folder, without reading files. before has the entries of
// the previous scan, which are included even if git ignores them now.
func (s *scan) list(before map[string]*entry) error {
	if err := s.folder(s.root, "", ignore.ForTree(s.path), 0); err != nil {
		return err
	}
	folders := map[string]bool{"": true}
	for name := range before {
		if s.files[name] != nil || !s.isFolder(path.Dir(name), folders) {
			continue
		}
		if info, err := s.root.Lstat(filepath.FromSlash(name)); err == nil {
			if err := s.add(name, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// isFolder reports whether a path and all its parents are folders, and not symlinks to folders.
func (s *scan) isFolder(name string, known map[string]bool) bool {
	if name == "." {
		return true
	}
	isDir, ok := known[name]
	if !ok {
		if isDir = s.isFolder(path.Dir(name), known); isDir {
			info, err := s.root.Lstat(filepath.FromSlash(name))
			isDir = err == nil && info.IsDir()
		}
		known[name] = isDir
	}
	return isDir
}

func (s *scan) folder(dir *os.Root, name string, rules *ignore.Rules, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	entries, err := readFolder(dir)
	if err != nil || depth > maxDepth {
		s.uncovered = append(s.uncovered, path.Join(name, "*"))
		return nil //nolint:nilerr // it is listed in uncovered
	}
	full := path.Join(filepath.ToSlash(s.path), name)
	if depth > 0 {
		has := func(want string) bool {
			return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == want })
		}
		rules = rules.Below(filepath.FromSlash(full), has(".git"), has(ignore.FileName))
	}
	for _, e := range entries {
		child := path.Join(name, e.Name())
		// The sandbox keeps commands from writing to .git and, where the system supports it, to .eca,
		// which may contain keys.
		if e.Name() == ".git" || e.Name() == ".eca" || slices.Contains(s.ownFolders, filepath.Join(s.path, filepath.FromSlash(child))) {
			continue
		}
		if rules.Ignored(path.Join(full, e.Name()), e.IsDir()) {
			s.ignored = true
			continue
		}
		info, err := dir.Lstat(e.Name())
		if err != nil {
			continue // removed in the meantime
		}
		if err := s.add(child, info); err != nil {
			return err
		}
		if !info.IsDir() {
			continue
		}
		next, err := dir.OpenRoot(e.Name())
		if err != nil {
			s.uncovered = append(s.uncovered, child)
			continue
		}
		err = s.folder(next, child, rules, depth+1)
		_ = next.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func readFolder(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (s *scan) add(name string, info fs.FileInfo) error {
	e := describe(info)
	switch e.Kind {
	case kindFile:
		s.bytes += e.Size
	case kindLink:
		target, err := s.root.Readlink(filepath.FromSlash(name))
		if err != nil {
			return nil //nolint:nilerr // removed or replaced in the meantime
		}
		e.Link = fileName(target)
	case kindSpecial:
		s.uncovered = append(s.uncovered, name)
	}
	s.files[name] = &e
	if len(s.files) > maxEntries {
		return fmt.Errorf("%s has more than %d files", s.path, maxEntries)
	}
	return nil
}

// read reads new and changed files, saves their contents with keep, and sets their hashes. Unchanged
// files keep their hashes.
func (s *scan) read(before map[string]*entry, keep func(content io.Reader, size int64) (hash string, err error)) error {
	limit, room := int64(maxFile), int64(maxBytes)
	if len(s.files) > maxFiles || s.bytes > maxBytes {
		limit, room = maxSmall, maxSmallBytes
	}
	large := 0
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		e := s.files[name]
		if e.Kind != kindFile {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if e.Size > limit || e.Size > room {
			if large++; large <= maxNamed {
				s.uncovered = append(s.uncovered, fmt.Sprintf("%s (%d MB)", name, e.Size>>20))
			}
			continue
		}
		room -= e.Size
		if old := before[name]; old != nil && old.unchanged(e) && old.Hash != "" {
			e.Hash = old.Hash
			continue
		}
		switch err := s.readFile(name, e, keep); {
		case errors.Is(err, fs.ErrNotExist):
			delete(s.files, name)
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errReplaced):
			s.uncovered = append(s.uncovered, name)
		case err != nil:
			return err
		}
	}
	if large > maxNamed {
		s.uncovered = append(s.uncovered, fmt.Sprintf("%d more large files", large-maxNamed))
	}
	return nil
}

// errReplaced is returned for a file that was replaced during the scan.
var errReplaced = errors.New("it was replaced while it was read")

func (s *scan) readFile(name string, e *entry, keep func(io.Reader, int64) (string, error)) error {
	f, err := safeio.OpenIn(s.root, filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	opened := describe(info)
	if opened.Kind != kindFile || opened.Inode != e.Inode {
		return errReplaced
	}
	opened.Recent = opened.recent(time.Now())
	if opened.Hash, err = keep(f, opened.Size); err != nil {
		return fmt.Errorf("cannot save %s: %w", name, err)
	}
	*e = opened
	return nil
}

// notCovered returns a short list of what was omitted.
func (s *scan) notCovered() []string {
	var out []string
	if s.ignored {
		out = append(out, "files that git ignores")
	}
	slices.Sort(s.uncovered)
	uncovered := slices.Compact(s.uncovered)
	out = append(out, uncovered[:min(len(uncovered), maxNamed)]...)
	if n := len(uncovered) - maxNamed; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return out
}

// maxNamed is the maximum number of listed files that are not covered.
const maxNamed = 5
