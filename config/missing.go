package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checkFiles reports files and folders that the user's configuration refers to and that do not
// exist. Otherwise it would go unnoticed that a rule is not read or a hook does not run. Relative
// paths may be meant for other workspaces.
func (b *builder) checkFiles() {
	for key, list := range map[string][]PathEntry{"rules": b.Rules, "commands": b.Commands, "skills": b.Skills} {
		for _, e := range list {
			b.checkFile([]string{key}, e.Path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Hooks)) {
		for i, action := range b.Hooks[name].Actions {
			b.checkFile([]string{"hooks", name, "actions", strconv.Itoa(i), "file"}, action.File)
		}
	}
}

func (b *builder) checkFile(at []string, path string) {
	full := UserPath(path, Origin{})
	if path == "" || strings.Contains(path, "${") || !filepath.IsAbs(full) {
		return
	}
	if _, err := os.Stat(full); errors.Is(err, fs.ErrNotExist) {
		b.looked(full)
		b.problemAt(at, "%s: there is no file or folder %s", KeyPath(at), full)
	}
}
