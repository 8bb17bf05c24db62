package extensions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Limits of the search below one folder, since symlinks may lead anywhere.
const (
	maxFolders = 1000
	maxFiles   = 2000
	maxDepth   = 16
	maxFile    = 1 << 20 // bytes
)

// foundFile is a file that may be an extension.
type foundFile struct {
	path string
	info fs.FileInfo // of the target if it is a symlink
	root string      // the workspace folder it was found in; empty if global

	plugin Plugin // the plugin it belongs to; zero if none
	claude bool   // it belongs to Claude Code
}

// search selects the files below a folder.
type search struct {
	flat              bool                   // does not search subfolders
	matches           func(name string) bool // selects files by name
	stopAtMatch       bool                   // a folder with a selected file is not searched further
	anyConfiguredName bool                   // a file whose path the user configured is selected whatever its name

	boundary string // targets of symlinks outside this folder are ignored; empty means no boundary
}

// walk is a running search.
type walk struct {
	search
	root         string
	files        []foundFile
	watch        []string
	folders      int
	visited      map[string]bool // targets of symlinks to folders
	limitReached bool
	leavingLinks []string // symlinks that lead out of the boundary

	danglingLinks []string // symlinks that lead to nothing
}

// find lists the file at path, or the files below a folder in the order of their names. It also
// returns the paths to watch, even if nothing exists yet.
func (s search) find(path, root string) (files []foundFile, watch []string, err error) {
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && s.leavesBoundary(path):
		return nil, []string{path}, errors.New("the link leads out of the plugin and is not followed")
	case errors.Is(statErr, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return nil, []string{path}, errors.New("the link leads to nothing")
		}
		return nil, []string{path}, nil
	case statErr != nil:
		return nil, []string{path}, statErr
	case !info.IsDir():
		if !s.anyConfiguredName && !s.matches(filepath.Base(path)) {
			return nil, []string{path}, nil
		}
		return []foundFile{{path: path, info: info, root: root}}, []string{path}, nil
	}
	w := &walk{search: s, root: root, visited: map[string]bool{}}
	// Level by level, so that the limits cut off the deepest folders.
	level := []string{path}
	for depth := 0; len(level) > 0 && !w.limitReached; depth++ {
		var next []string
		for _, dir := range level {
			below, failed := w.folder(dir)
			next, err = append(next, below...), errors.Join(err, failed)
		}
		w.limitReached = w.limitReached || depth == maxDepth && len(next) > 0
		level = next
	}
	if err == nil && w.limitReached {
		err = fmt.Errorf("it has more than %d files, %d folders or %d levels; the rest is ignored", maxFiles, maxFolders, maxDepth)
	}
	for _, link := range w.leavingLinks {
		err = errors.Join(err, fmt.Errorf("the link %s leads out of the plugin and is not followed", link))
	}
	for _, link := range w.danglingLinks {
		err = errors.Join(err, fmt.Errorf("the link %s leads to nothing", link))
	}
	return w.files, w.watch, err
}

// leavesBoundary reports whether a path leads out of the boundary.
func (s search) leavesBoundary(path string) bool {
	if s.boundary == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	return err != nil || !safeio.Within(s.boundary, real)
}

// folder reads one folder and returns its subfolders.
func (w *walk) folder(dir string) (below []string, err error) {
	if w.folders++; w.folders > maxFolders {
		w.limitReached = true
		return nil, nil
	}
	w.watch = append(w.watch, filepath.Join(dir, "*"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !w.matches(e.Name()) {
			continue // most files beside a skill are not selected
		}
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		link := err == nil && info.Mode()&fs.ModeSymlink != 0
		if link {
			info, err = os.Stat(path)
			w.watch = append(w.watch, path) // the target is elsewhere
		}
		switch {
		case link && errors.Is(err, fs.ErrNotExist) && isRegularName(e.Name()):
			w.danglingLinks = append(w.danglingLinks, path)
		case err != nil: // deleted
		case link && w.leavesBoundary(path):
			w.leavingLinks = append(w.leavingLinks, path)
		case info.IsDir() && (!isMarkdown(e.Name()) || !w.matches(e.Name())):
			if !w.flat && w.enter(path, e.Name(), link) {
				below = append(below, path)
			}
		case w.matches(e.Name()): // reading anything but a regular file fails
			if len(w.files) == maxFiles {
				w.limitReached = true
				return nil, nil
			}
			w.files = append(w.files, foundFile{path: path, info: info, root: w.root})
			if w.stopAtMatch {
				return nil, nil
			}
		}
	}
	return below, nil
}

// enter reports whether to search a folder. Folders of version control and package managers are
// skipped, and no folder is searched twice.
func (w *walk) enter(path, name string, link bool) bool {
	if slices.Contains([]string{".git", ".hg", ".svn", "node_modules"}, name) {
		return false
	}
	if !link {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || w.visited[real] || strings.HasPrefix(path+string(filepath.Separator), real+string(filepath.Separator)) {
		return false
	}
	w.visited[real] = true
	return true
}

// isMarkdown reports whether a file name is that of a Markdown file.
func isMarkdown(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".md") }

// isRegularName reports whether a name is a regular one: not hidden, and not a backup file of an editor.
func isRegularName(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !strings.HasPrefix(name, "#") && !strings.HasSuffix(name, ".swp")
}
