package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxLinkDepth is the depth to which a protected folder is searched for symlinks.
const maxLinkDepth = 2

// protectTarget protects the target of a symlink that is a protected path or in a protected folder,
// because programs that follow the symlink run or read the target. It also pins the symlinks that
// lead to the target, and the parent folders of these symlinks and the target.
func (f *finder) protectTarget(link string) {
	resolved := ResolvePath(link)
	f.pinLinkChain(resolved)
	if f.containsRootOr(resolved.Real, link) || !f.childMayWrite(resolved.Real) {
		return // neither a whole root nor the folder of the symlink can be read-only, and other targets need no protection
	}
	info, err := os.Lstat(resolved.Real)
	switch {
	case err != nil:
		f.places.missing = append(f.places.missing, resolved.Real)
	case info.IsDir() && filepath.Base(link) == ".git":
		f.scanRepository(resolved.Real)
	case !f.visitedTargets[resolved.Real]:
		f.visitedTargets[resolved.Real] = true
		f.addReadOnly(resolved.Real)
		f.protectContents(resolved.Real, info, 0)
	}
}

// pinLinkChain prevents the symlinks of a resolved path from being replaced, and their parent folders
// and those of the target from being moved. The first symlink may still move together with its
// folder, like every protected path.
func (f *finder) pinLinkChain(resolved ResolvedPath) {
	if f.withinLimits() {
		f.places.Links = append(f.places.Links, resolved.Links...)
	}
	f.pinParentsOf(resolved.Real)
	if len(resolved.Links) > 1 {
		f.pinParentsOf(resolved.Links[1:]...)
	}
}

// containsRootOr reports whether a folder contains a workspace root or the given path.
func (f *finder) containsRootOr(dir, place string) bool {
	return safeio.Within(dir, place) || slices.ContainsFunc(f.roots, func(root string) bool { return safeio.Within(dir, root) })
}

// childMayWrite reports whether a path is in a folder that the child may write to. It ignores
// protection.
func (f *finder) childMayWrite(at string) bool {
	return slices.ContainsFunc(f.writable, func(dir string) bool { return safeio.Within(dir, at) })
}

// protectContents protects the targets of symlinks below a protected path, and records its files for
// protectHardLinks.
func (f *finder) protectContents(at string, info fs.FileInfo, depth int) {
	if !info.IsDir() {
		f.linkedFiles.add(at, info, true)
		return
	}
	if !f.countFolder(at) {
		return
	}
	defer f.makeReadable(at)()
	for _, e := range f.list(at) {
		path := filepath.Join(at, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			f.protectTarget(path)
		case e.IsDir() && (depth >= maxLinkDepth || isGeneratedFolder(e.Name())):
		default:
			if info, err := e.Info(); err == nil {
				f.protectContents(path, info, depth+1)
			}
		}
	}
}

// gitSubfolder returns a subfolder of a git folder, with symlinks resolved, and pins it. It returns
// an empty string if there is no such folder.
func (f *finder) gitSubfolder(dir, name string) string {
	resolved := ResolvePath(filepath.Join(dir, name))
	info, err := os.Lstat(resolved.Real)
	if len(resolved.Links) > 0 {
		f.pinLinkChain(resolved)
		if err != nil && f.childMayWrite(resolved.Real) {
			f.places.missing = append(f.places.missing, resolved.Real)
		}
	}
	if err != nil || !info.IsDir() {
		return ""
	}
	f.pinGitFolder(resolved.Real)
	return resolved.Real
}

// protectGitObjects protects the alternates file, which lists further object folders, and packs that
// are hard links, as in a local clone. Git never writes to an existing pack.
func (f *finder) protectGitObjects(dir string) {
	resolved := ResolvePath(filepath.Join(dir, "objects", "info", "alternates"))
	if _, err := os.Lstat(resolved.Real); err == nil {
		f.pinLinkChain(resolved)
		f.protectPath(resolved.Real)
	}
	packs := filepath.Join(dir, "objects", "pack")
	entries, _ := readDir(packs)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			if _, links := linkCount(info); links > 1 && info.Mode().IsRegular() {
				f.addReadOnly(filepath.Join(packs, e.Name()))
			}
		}
	}
}

// protectConfiguredPaths protects the folder of hooks (core.hooksPath) and the included configuration
// files (include.path) that a repository's configuration names.
func (f *finder) protectConfiguredPaths(dir, tree string) {
	for _, file := range []string{"config", "config.worktree"} {
		file = filepath.Join(dir, file)
		for base, key := range map[string]string{tree: "hookspath", filepath.Dir(ResolvePath(file).Real): "path"} {
			for _, at := range settingsOf(file, key) {
				if !filepath.IsAbs(at) {
					at = filepath.Join(base, at)
				}
				if resolved := ResolvePath(at); f.childMayWrite(resolved.Real) && !f.containsRootOr(resolved.Real, dir) {
					f.protectPath(at)
					f.pinParentsOf(at)
				}
			}
		}
	}
}

// settingsOf returns the values of a key in a git configuration file, in any section.
func settingsOf(file, key string) (values []string) {
	for line := range strings.Lines(readSmallFile(file)) {
		name, value, ok := strings.Cut(line, "=")
		if end := strings.IndexByte(name, ']'); end >= 0 { // the key follows the section header on the same line
			name = name[end+1:]
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if ok && value != "" && strings.EqualFold(strings.TrimSpace(name), key) {
			values = append(values, value)
		}
	}
	return values
}
