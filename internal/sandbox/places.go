package sandbox

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Names lists the files and folders that commands must not change anywhere in a workspace, because
// programs run them or read their configuration from them. Names are compared after Fold. A name
// with slashes matches the end of a path.
type Names struct {
	Folders  []string
	Files    []string
	Patterns []string // path.Match patterns for the last two elements of a file's path
}

// Limits of a search for protected paths: depth, number of folders, number of repositories. Prepare
// and Since search beyond them (wideFactor), because a command could otherwise hide a protected path
// among many others. Paths that are found beyond the normal limits do not become read-only.
const (
	maxDepth        = 4
	maxFolders      = 5000
	maxRepositories = 200
	wideFactor      = 100
)

// isGeneratedFolder reports whether a folder of this name usually contains fetched dependencies or
// build output.
func isGeneratedFolder(name string) bool {
	return slices.Contains([]string{"node_modules", "target", "vendor", ".venv", "venv", "__pycache__", ".tox", "dist", "build", ".next", ".cache"}, name)
}

// Places contains the protected paths of workspaces, as FindPlaces found them.
type Places struct {
	Keep       []string `json:"keep,omitempty"`  // files and folders that become read-only
	Pins       []string `json:"pins,omitempty"`  // folders that must not be moved
	Links      []string `json:"links,omitempty"` // symlinks that must not be replaced
	PinParents []string `json:"fixed,omitempty"` // paths whose parent folders must not be moved
	Write      []string `json:"-"`               // git folders that belong to a root but lie outside it (worktrees, submodules)
	Whole      bool     `json:"-"`               // the search was complete

	guard            Guard
	found            map[string]place  // the protected paths that were found
	missing          []string          // targets of protected symlinks, if they did not exist
	unlisted         map[string]string // folders that could not be listed, by file ID
	incompleteReason string            // why some protected paths may not have been found; empty if the search was complete
}

// place is the file or folder at a protected path.
type place struct {
	info fs.FileInfo
	link string // the target of a symlink; otherwise empty

	recorded *fileMark // set by RecordedPlaces, instead of info
}

// FindPlaces searches for protected paths. If it reaches a limit, Places.Whole is false.
func FindPlaces(g Guard) Places {
	f := &finder{
		names: g.Names, filter: g.Names.filter(),
		places:      Places{Whole: true, guard: g, found: map[string]place{}, unlisted: map[string]string{}},
		linkedFiles: hardLinks{}, visitedTargets: map[string]bool{}, gitFolders: map[string]bool{},
	}
	f.roots = resolveAll(g.Roots)
	f.writable = resolveAll(append(g.Roots[:len(g.Roots):len(g.Roots)], g.write...))
	for _, root := range f.roots {
		f.scanFolder(root, 0)
	}
	f.protectHome()
	if !g.recheck {
		f.protectOwnPaths()
		f.protectHardLinks()
	}
	for _, common := range g.common {
		f.protectGitFolder(common)
	}
	p := f.places
	for _, list := range []*[]string{&p.Keep, &p.Pins, &p.Links, &p.PinParents} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	p.Keep = slices.DeleteFunc(p.Keep, func(at string) bool { return f.gitFolders[at] }) // git writes to these folders
	return p
}

// Known reports whether path is one of the protected paths that were found.
func (p Places) Known(path string) bool {
	_, ok := p.found[path]
	return ok
}

// Root returns the innermost folder around a path that commands may write to: a workspace root, or
// the git folder that belongs to one.
func (p Places) Root(path string) (root string, ok bool) {
	for _, r := range slices.Concat(p.guard.Roots, p.guard.write, p.Write, p.guard.common) {
		if real, err := filepath.EvalSymlinks(r); err == nil && strings.HasPrefix(path, real+"/") && len(real) > len(root) {
			root = real
		}
	}
	return root, root != ""
}

type finder struct {
	names                 Names
	filter                nameFilter
	places                Places
	roots, writable       []string // symlinks resolved
	folders, repositories int
	linkedFiles           hardLinks
	visitedTargets        map[string]bool // targets of symlinks that were already searched
	gitFolders            map[string]bool // folders that hold a repository's data
}

// scanFolder searches a folder and its subfolders for protected paths.
func (f *finder) scanFolder(dir string, depth int) {
	if !f.countFolder(dir) {
		return
	}
	defer f.makeReadable(dir)()
	gitEntries, files := 0, []string(nil)
	for _, e := range f.list(dir) {
		name, at := e.Name(), filepath.Join(dir, e.Name())
		switch name {
		case "HEAD", "objects", "refs", "commondir": // commondir names the folder with the other three
			gitEntries++
		}
		git := Fold(name) == ".git"
		switch {
		case git && e.IsDir():
			f.scanRepository(at)
		case git:
			f.protectPath(at)
			f.followGitFile(at)
		case f.filter.mayMatch(name) && f.names.Match(at):
			f.protectPath(at)
		case e.IsDir() && isDependencyFolder(name) && !f.places.guard.recheck:
			f.protectSharedFolders(at)
		case e.IsDir() && (depth < maxDepth) && !isGeneratedFolder(name):
			f.scanFolder(at, depth+1)
		case e.Type().IsRegular() && !f.places.guard.recheck:
			files = append(files, name)
		}
	}
	eachHardLinked(dir, files, func(name string, id nodeID, all uint64) {
		f.linkedFiles.addNode(filepath.Join(dir, name), id, all, false)
	})
	if gitEntries >= 2 { // two suffice: a command may have removed the others
		f.protectGitFolder(dir)
	}
}

// Match reports whether a path matches one of the names.
func (n Names) Match(at string) bool {
	at = Fold(at)
	dir, name := path.Split(at)
	twoNames := path.Join(path.Base(dir), name)
	endsWith := func(listed string) bool {
		return name == listed || strings.Contains(listed, "/") && strings.HasSuffix(at, "/"+listed)
	}
	return slices.ContainsFunc(n.Folders, endsWith) || slices.ContainsFunc(n.Files, endsWith) ||
		slices.ContainsFunc(n.Patterns, func(pattern string) bool { ok, _ := path.Match(pattern, twoNames); return ok })
}

// protectPath protects an existing path, its hidden parent folders, its contents and, if it is a
// symlink, its target.
func (f *finder) protectPath(at string) {
	info, err := os.Lstat(at)
	if err != nil {
		return
	}
	f.pinHiddenParents(at)
	if info.Mode()&fs.ModeSymlink == 0 {
		f.places.found[at] = place{info: info}
		f.addReadOnly(at)
		f.protectContents(at, info, 0)
		return
	}
	link, _ := os.Readlink(at)
	f.places.found[at] = place{info: info, link: link}
	f.protectTarget(at)
}

// pinHiddenParents prevents the hidden folders around a protected path from being moved away with
// it.
func (f *finder) pinHiddenParents(at string) {
	if !f.withinLimits() {
		return
	}
	for dir := filepath.Dir(at); strings.HasPrefix(filepath.Base(dir), "."); dir = filepath.Dir(dir) {
		f.places.Pins = append(f.places.Pins, dir)
	}
}

// scanRepository protects the hooks and configuration in the .git folder of a repository, and the
// paths that the configuration names.
func (f *finder) scanRepository(at string) {
	if !f.countRepository(at) {
		return
	}
	if info, err := os.Lstat(at); err == nil {
		f.places.found[at] = place{info: info}
	}
	f.pinGitFolder(at)
	f.protectGitFolder(at)
	f.protectConfiguredPaths(at, filepath.Dir(at))
}

// pinGitFolder prevents a folder that git writes to from being moved.
func (f *finder) pinGitFolder(dir string) {
	f.pin(dir)
	f.gitFolders[dir] = true
}

// protectGitFolder protects hooks, configuration and similar files in a folder with the data of a
// repository.
func (f *finder) protectGitFolder(dir string) {
	defer f.makeReadable(dir)()
	for _, name := range []string{"hooks", "config", "config.worktree", "commondir"} {
		f.protectPath(filepath.Join(dir, name))
	}
	if info := f.gitSubfolder(dir, "info"); info != "" {
		defer f.makeReadable(info)()
		f.protectPath(filepath.Join(info, "attributes"))
	}
	f.protectGitObjects(dir)
	if worktrees := f.gitSubfolder(dir, "worktrees"); worktrees != "" {
		defer f.makeReadable(worktrees)()
		for _, e := range f.list(worktrees) {
			f.protectWorktree(filepath.Join(worktrees, e.Name()))
		}
	}
	f.protectSubmodules(f.gitSubfolder(dir, "modules"), 0)
}

// protectWorktree protects configuration in the folder that a repository keeps for a linked worktree.
func (f *finder) protectWorktree(dir string) {
	defer f.makeReadable(dir)()
	f.protectPath(filepath.Join(dir, "config.worktree"))
	// Git writes commondir when it creates the worktree and removes it with the worktree. The file
	// only needs protection if it points to an unusual folder.
	common := filepath.Join(dir, "commondir")
	if _, err := os.Lstat(common); err == nil && strings.TrimSpace(readSmallFile(common)) != usualCommonDir {
		f.protectPath(common)
	}
}

// usualCommonDir is the usual content of the file commondir of a linked worktree.
const usualCommonDir = "../.."

// protectSubmodules protects the repositories of submodules, whose names may contain slashes.
func (f *finder) protectSubmodules(dir string, depth int) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || depth > maxDepth || !f.countFolder(dir) {
		return
	}
	defer f.makeReadable(dir)()
	entries := f.list(dir)
	// One of these is enough to recognize a repository: a command may have removed the others.
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return slices.Contains([]string{"HEAD", "config", "hooks", "objects", "refs"}, e.Name())
	}) {
		if f.countRepository(dir) {
			f.protectGitFolder(dir)
		}
		return
	}
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			f.protectSubmodules(f.gitSubfolder(dir, e.Name()), depth+1)
		}
	}
}

// followGitFile protects the repository that a .git file points to (linked worktrees, submodules)
// and makes it writable, but only if the repository itself points back to the folder with the .git
// file.
func (f *finder) followGitFile(at string) {
	target, ok := strings.CutPrefix(strings.TrimSpace(readSmallFile(at)), "gitdir:")
	if !ok {
		return
	}
	dir, err := strings.TrimSpace(target), error(nil)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(at), dir)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return
	}
	common := dir
	if back := readSmallFile(filepath.Join(dir, "gitdir")); back != "" && filepath.Base(filepath.Dir(dir)) == "worktrees" {
		if !samePath(strings.TrimSpace(back), at) {
			return
		}
		common = filepath.Dir(filepath.Dir(dir))
	} else if !namesWorkTree(dir, filepath.Dir(at)) {
		return
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(common, part)); err != nil {
			return
		}
	}
	f.places.Write, f.writable = append(f.places.Write, common), append(f.writable, common)
	f.pinGitFolder(common)
	f.pinParentsOf(common)
	f.protectGitFolder(common)
	f.protectConfiguredPaths(common, filepath.Dir(at))
	if common != dir { // these two files link worktree and repository; git only writes them once
		f.protectPath(filepath.Join(dir, "commondir"))
		f.protectPath(filepath.Join(dir, "gitdir"))
	}
}

// samePath reports whether two existing paths are equal once their symlinks are resolved.
func samePath(a, b string) bool {
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

// namesWorkTree reports whether a repository's configuration names a folder as its work tree, as the
// configuration of a submodule does.
func namesWorkTree(dir, tree string) bool {
	for line := range strings.Lines(readSmallFile(filepath.Join(dir, "config"))) {
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), "worktree") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if !filepath.IsAbs(value) {
			value = filepath.Join(dir, value)
		}
		return samePath(value, tree)
	}
	return false
}
