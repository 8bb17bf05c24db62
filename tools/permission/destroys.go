package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/ignore"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
)

// irreversibleLoss describes the work that a command loses irreversibly; empty if no loss is known.
// Temporary folders, and those that git ignores, do not count, because programs can create them again.
func (j *judgment) irreversibleLoss(roots []string, c *tools.Command, printed *tools.Printed) string {
	if c == nil {
		return ""
	}
	why := j.programLoss(roots, c.Dir, c.Program)
	if why == "" && c.Program.Expands && printed.Text != "" { // braces, globs and escapes are expanded
		why = j.programLoss(roots, c.Dir, printed.Program)
	}
	return why
}

func (j *judgment) programLoss(roots []string, dir string, program cmdline.Program) string {
	dirs, known := j.newWorkDirs(dir), true
	for _, cmd := range program.Commands {
		known = known && dirs.enter(cmd)
		if cmd.Destroys != "" {
			return cmd.Destroys
		}
		for _, dir := range dirs.possible {
			for _, name := range cmd.Discards {
				if _, err := os.Lstat(joinPath(dir, expandHome(name))); err == nil && strings.Trim(name, "/") != "" {
					return "git checkout discards uncommitted changes of " + name
				}
			}
			for _, name := range cmd.Deletes {
				if !known || !j.expendable(roots, dir, name, cmd) {
					return "it deletes " + name + " and its contents"
				}
			}
		}
	}
	return ""
}

// expendable reports whether the files and folders that a word names may be deleted.
func (j *judgment) expendable(roots []string, dir, name string, cmd cmdline.Command) bool {
	if strings.ContainsAny(name, "$`{}[") && !strings.HasPrefix(name, "$HOME/") || strings.HasPrefix(name, "~") && !strings.HasPrefix(name, "~/") {
		return false // the name is computed
	}
	path := joinPath(dir, expandHome(name))
	found := []string{path}
	if strings.ContainsAny(name, "*?") {
		var ok bool
		if found, ok = expandGlob(path); !ok || len(found) == 0 {
			return false
		}
	}
	temp, home := j.links.Resolve(os.TempDir()), j.links.Resolve(expandHome("~/"))
	for _, path := range found {
		// rm removes a symlink, not its target.
		if parent, last := filepath.Split(path); cmd.Name == "find" || last == "" || last == ".." {
			path = j.links.Resolve(path)
		} else {
			path = filepath.Join(j.links.Resolve(parent), last)
		}
		switch {
		case slices.ContainsFunc(roots, func(root string) bool { return safeio.Within(path, j.links.Resolve(root)) }):
			return false
		case j.inside(path):
			if !ignoredByGit(path) {
				return false
			}
		case path == temp || !safeio.Within(temp, path):
			return false
		case safeio.Within(path, home), safeio.Within(temp, home) && safeio.Within(home, path):
			return false // the home folder is below the temporary folder
		}
	}
	return true
}

// ignoredByGit reports whether git ignores a folder or one of its parents.
func ignoredByGit(path string) bool {
	for ; filepath.Dir(path) != path; path = filepath.Dir(path) {
		if ignore.ForTree(filepath.Dir(path)).Ignored(filepath.ToSlash(path), true) {
			return true
		}
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			return false // the top of the repository
		}
	}
	return false
}
