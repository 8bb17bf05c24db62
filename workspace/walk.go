package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/ignore"
)

// File is one entry of a walk.
type File struct {
	Path    string // absolute
	Rel     string // relative to the walked folder, with slashes
	Dir     bool
	Regular bool // a regular file
	Depth   int  // 1 for direct children
}

// Walk visits the entries below dir in lexical order, each folder before its content. It skips hidden
// entries, entries that ignore files exclude, and the content of unreadable folders. It visits
// symlinks but does not follow them, except for dir itself. If dir is not a folder, Walk visits
// nothing. fn may return filepath.SkipDir or filepath.SkipAll, as for filepath.WalkDir.
func Walk(ctx context.Context, dir string, fn func(File) error) error {
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if info, err := os.Stat(top); err != nil || !info.IsDir() {
		return err
	}
	w := walk{ctx: ctx, dir: dir, fn: fn}
	err = w.folder(top, "", 1, nil)
	if errors.Is(err, filepath.SkipAll) || errors.Is(err, filepath.SkipDir) {
		return nil
	}
	return err
}

// walk is one run of Walk.
type walk struct {
	ctx context.Context
	dir string // as the caller named it
	fn  func(File) error
}

// folder visits the content of a folder. rel ends with a slash unless it is empty.
func (w *walk) folder(path, rel string, depth int, rules *ignore.Rules) error {
	entries, rules, err := readFolder(path, rules)
	if err != nil && rel == "" && len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		name := rel + e.Name()
		err := w.fn(File{Path: filepath.Join(w.dir, filepath.FromSlash(name)), Rel: name, Dir: e.IsDir(), Regular: e.Type().IsRegular(), Depth: depth})
		switch {
		case errors.Is(err, filepath.SkipDir) && e.IsDir():
			continue
		case errors.Is(err, filepath.SkipDir):
			return nil
		case err != nil:
			return err
		case !e.IsDir():
			continue
		}
		if err := w.folder(filepath.Join(path, e.Name()), name+"/", depth+1, rules); err != nil {
			return err
		}
	}
	return nil
}

// readFolder lists the entries of a folder that are neither hidden nor ignored, sorted by name, and
// returns the ignore rules of the folder. rules are those of the parent; nil means that the folder is
// the top of a walk. If reading fails midway, readFolder returns the entries that it has read and the
// error.
func readFolder(path string, rules *ignore.Rules) ([]fs.DirEntry, *ignore.Rules, error) {
	entries, err := os.ReadDir(path)
	git, file := false, false
	for _, e := range entries {
		switch e.Name() {
		case ".git":
			git = true
		case ignore.FileName:
			file = e.Type().IsRegular()
		}
	}
	if rules == nil {
		rules = ignore.ForTree(path)
	} else {
		rules = rules.Below(path, git, file)
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasSuffix(slashed, "/") {
		slashed += "/"
	}
	visible := entries[:0]
	for _, e := range entries {
		if e.Name()[0] != '.' && !rules.Ignored(slashed+e.Name(), e.IsDir()) {
			visible = append(visible, e)
		}
	}
	return visible, rules, err
}

// CountBeforeIgnored returns how many of the folders precede the first one that the ignore rules
// exclude. The first folder must be in root, and each other folder in the previous one. Hidden
// folders are not excluded.
func CountBeforeIgnored(root string, dirs []string) int {
	if len(dirs) == 0 {
		return 0
	}
	rules := ignore.ForTree(Resolve(root))
	for i, dir := range dirs {
		real := filepath.Join(Resolve(filepath.Dir(dir)), filepath.Base(dir))
		if rules.Ignored(filepath.ToSlash(real), true) {
			return i
		}
		_, err := os.Lstat(filepath.Join(real, ".git"))
		rules = rules.Below(real, err == nil, true)
	}
	return len(dirs)
}
