package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/ignore"
	"github.com/seed-dec29ce4/eca/tools"
)

// destroys returns what a command ends for good, or "". Folders that are created again all
// the time may go: those in a temporary folder, and what git ignores in the workspace.
func (j *judgment) destroys(roots []string, c *tools.Command) string {
	if c == nil {
		return ""
	}
	places, known := j.newPlaces(c.Dir), true
	for _, cmd := range c.Program.Commands {
		known = known && places.enter(cmd)
		if cmd.Destroys != "" {
			return cmd.Destroys
		}
		for _, dir := range places.dirs {
			for _, name := range cmd.Discards {
				if _, err := os.Lstat(under(dir, expandHome(name))); err == nil && strings.Trim(name, "/") != "" {
					return "git checkout throws away changes of " + name + " that are not committed"
				}
			}
			for _, name := range cmd.Deletes {
				if !known || !j.expendable(roots, dir, name, cmd) {
					return "it deletes " + name + " with all that is in it"
				}
			}
		}
	}
	return ""
}

// expendable reports whether what a word names may be deleted with all that is in it.
func (j *judgment) expendable(roots []string, dir, name string, cmd cmdline.Command) bool {
	if strings.ContainsAny(name, "$`{}[") && !strings.HasPrefix(name, "$HOME/") || strings.HasPrefix(name, "~") && !strings.HasPrefix(name, "~/") {
		return false // computed
	}
	path := under(dir, expandHome(name))
	found := []string{path}
	if strings.ContainsAny(name, "*?") {
		var ok bool
		if found, ok = expand(path); !ok || len(found) == 0 {
			return false
		}
	}
	temp, home := j.links.Resolve(os.TempDir()), j.links.Resolve(expandHome("~/"))
	for _, path := range found {
		// rm takes a link away, and not what it leads to.
		if parent, last := filepath.Split(path); cmd.Name == "find" || last == "" || last == ".." {
			path = j.links.Resolve(path)
		} else {
			path = filepath.Join(j.links.Resolve(parent), last)
		}
		switch {
		case slices.ContainsFunc(roots, func(root string) bool { return within(j.links.Resolve(root), path) }):
			return false
		case j.inside(path):
			if !ignored(path) {
				return false
			}
		case path == temp || !within(path, temp):
			return false
		case within(home, path), within(home, temp) && within(path, home):
			return false // a home folder that is a temporary one
		}
	}
	return true
}

// within reports whether a path is a folder or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// ignored reports whether git ignores a folder, or one that it is in.
func ignored(path string) bool {
	for ; filepath.Dir(path) != path; path = filepath.Dir(path) {
		if ignore.ForTree(filepath.Dir(path)).Ignored(filepath.ToSlash(path), true) {
			return true
		}
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			return false // a repository, which begins here
		}
	}
	return false
}
