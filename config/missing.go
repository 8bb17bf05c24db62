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

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// checkFiles reports files and folders that the configuration names but that do not exist, so that
// users notice a rule that is not read or a hook that does not run. It skips relative paths in the
// user's own files, because they may be meant for other workspaces.
func (b *builder) checkFiles() {
	for key, list := range map[string][]PathEntry{"rules": b.Rules, "commands": b.Commands, "skills": b.Skills} {
		for _, e := range list {
			b.checkFile([]string{key}, e.Path, b.in.Roots, false)
		}
	}
	first := b.in.Roots[:min(1, len(b.in.Roots))] // where hooks run
	for _, name := range slices.Sorted(maps.Keys(b.Hooks)) {
		for i, action := range b.Hooks[name].Actions {
			at := []string{"hooks", name, "actions", strconv.Itoa(i)}
			b.checkFile(append(at, "file"), action.File, first, true)
			b.checkFile(append(at, "shell"), scriptOf(action.Shell), first, false)
		}
	}
}

// checkFile reports a path that does not exist. A relative path has to exist in one of the folders in
// roots. mustBeFile means that a folder is a mistake too.
func (b *builder) checkFile(at []string, path string, roots []string, mustBeFile bool) {
	if path == "" || strings.Contains(path, "${") {
		return
	}
	candidates := []string{UserPath(path, Origin{})}
	if !filepath.IsAbs(candidates[0]) {
		source := b.originOf(at).Source
		if !slices.ContainsFunc(b.layers, func(l *layer) bool { return l.root != "" && l.source == source }) {
			return
		}
		candidates = nil
		for _, root := range roots {
			candidates = append(candidates, filepath.Join(root, path))
		}
	}
	for _, full := range candidates {
		info, err := os.Stat(full)
		if err == nil && info.IsDir() && mustBeFile {
			b.recordFile(full)
			b.problemAt(at, "%s: %s is a folder, not a file", KeyPath(at), full)
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	for _, full := range candidates {
		b.recordFile(full)
	}
	if len(candidates) > 0 {
		b.problemAt(at, "%s: there is no file or folder %s", KeyPath(at), candidates[0])
	}
}

// MissingGuards returns a message for each script with a relative path that a preToolCall hook needs and
// that does not exist in the folder in which hooks run. The hook would let the calls run.
func (l *Loaded) MissingGuards(folder string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(l.Hooks)) {
		for _, action := range l.Hooks[name].Actions {
			for _, path := range []string{action.File, scriptOf(action.Shell)} {
				full := UserPath(path, Origin{})
				if l.Hooks[name].Type != "preToolCall" || path == "" || strings.Contains(path, "${") || filepath.IsAbs(full) {
					continue
				}
				if _, err := os.Stat(filepath.Join(folder, full)); errors.Is(err, fs.ErrNotExist) {
					origin, _ := l.Origin("hooks", name)
					out = append(out, origin.Place()+": hooks."+name+" cannot run: there is no file "+filepath.Join(folder, full))
				}
			}
		}
	}
	return out
}

// plainPath matches a word of a shell that is a path without anything to expand.
var plainPath = pattern.Lazy(`^~?[\w./+-]*[./][\w./+-]*$`)

// scriptOf returns the script that a shell command runs first: its first word, or the word after an
// interpreter. It is empty if that word is not a plain path.
func scriptOf(command string) string {
	words := strings.Fields(command)
	if len(words) > 1 {
		if _, interpreter := launcherNamed(words[0]); interpreter {
			words = words[1:]
		}
	}
	if len(words) == 0 || !plainPath().MatchString(words[0]) || strings.HasPrefix(words[0], "-") {
		return ""
	}
	return words[0]
}
