package extensions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is looked through below one folder: links may lead anywhere.
const (
	maxFolders = 1000
	maxFiles   = 2000
	maxDepth   = 16
	maxFile    = 1 << 20 // bytes
)

// foundFile is a file that may be an extension.
type foundFile struct {
	path string
	info fs.FileInfo // of what it leads to
	root string      // the workspace folder it was found for; empty: global

	plugin Plugin // it belongs to; empty: none
	claude bool   // it is Claude Code's
}

// search says which files below a folder count.
type search struct {
	flat  bool                   // only those in the folder itself
	want  func(name string) bool // by name
	ends  bool                   // a folder with such a file has no others
	loose bool                   // a file that the user named counts whatever its name

	boundary string // what links lead to outside this folder does not count; empty: it does
}

// walk looks through folders.
type walk struct {
	search
	root    string
	files   []foundFile
	watch   []string
	folders int
	visited map[string]bool // folders that links lead to
	full    bool
	out     []string // links that lead to where nothing counts
}

// find lists what is at path: the file itself, or the files below a folder, in the order
// of their names. It names what to watch, also where there is nothing yet.
func (s search) find(path, root string) (files []foundFile, watch []string, err error) {
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && s.leaves(path):
		return nil, []string{path}, errors.New("it is a link that leads out of the plugin; it is not followed")
	case errors.Is(statErr, fs.ErrNotExist):
		return nil, []string{path}, nil
	case statErr != nil:
		return nil, []string{path}, statErr
	case !info.IsDir():
		if !s.loose && !s.want(filepath.Base(path)) {
			return nil, []string{path}, nil
		}
		return []foundFile{{path: path, info: info, root: root}}, []string{path}, nil
	}
	w := &walk{search: s, root: root, visited: map[string]bool{}}
	// Level by level: what is left out of too much is what lies deepest.
	level := []string{path}
	for depth := 0; len(level) > 0 && !w.full; depth++ {
		var next []string
		for _, dir := range level {
			below, failed := w.folder(dir)
			next, err = append(next, below...), errors.Join(err, failed)
		}
		w.full = w.full || depth == maxDepth && len(next) > 0
		level = next
	}
	if err == nil && w.full {
		err = fmt.Errorf("there are more than %d files, %d folders or %d levels below it; the rest is left out", maxFiles, maxFolders, maxDepth)
	}
	for _, link := range w.out {
		err = errors.Join(err, fmt.Errorf("%s is a link that leads out of the plugin; it is not followed", link))
	}
	return w.files, w.watch, err
}

// leaves says whether a path leads to where nothing counts.
func (s search) leaves(path string) bool {
	if s.boundary == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	below, err := filepath.Rel(s.boundary, real)
	return err != nil || !filepath.IsLocal(below)
}

// folder looks into one folder and returns those below it.
func (w *walk) folder(dir string) (below []string, err error) {
	if w.folders++; w.folders > maxFolders {
		w.full = true
		return nil, nil
	}
	w.watch = append(w.watch, filepath.Join(dir, "*"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !w.want(e.Name()) {
			continue // most of what lies beside a skill
		}
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		link := err == nil && info.Mode()&fs.ModeSymlink != 0
		if link {
			info, err = os.Stat(path)
			w.watch = append(w.watch, path) // where it leads is elsewhere
		}
		switch {
		case err != nil: // gone, or a link to nowhere
		case link && w.leaves(path):
			w.out = append(w.out, path)
		case info.IsDir():
			if !w.flat && w.enter(path, e.Name(), link) {
				below = append(below, path)
			}
		case info.Mode().IsRegular() && w.want(e.Name()):
			if len(w.files) == maxFiles {
				w.full = true
				return nil, nil
			}
			w.files = append(w.files, foundFile{path: path, info: info, root: w.root})
			if w.ends {
				return nil, nil
			}
		}
	}
	return below, nil
}

// enter says whether to look into a folder: not what version control and package managers
// keep, and none twice.
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

// markdown says whether a name is a Markdown file's.
func markdown(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".md") }

// plain says whether a name is one that people give: not a hidden one, and not what
// editors leave behind.
func plain(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !strings.HasPrefix(name, "#") && !strings.HasSuffix(name, ".swp")
}
