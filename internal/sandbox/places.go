package sandbox

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Names says which files and folders commands must not change wherever they are in a workspace:
// programs run what is in them, or take orders from it. They are compared as Fold
// writes them, a name with slashes with the end of a path.
type Names struct {
	Folders  []string
	Files    []string
	Patterns []string // of the last two names of a file (path.Match)
}

// Bounds of a search for protected places: below so many folders, in so many, and so many
// repositories. The search after a command goes farther, so that the command cannot hide a place
// among others; these are not made read-only.
const (
	maxDepth        = 4
	maxFolders      = 5000
	maxRepositories = 200
	farther         = 100
)

// skipped are folders that hold what tools fetch or build.
func skipped(name string) bool {
	return slices.Contains([]string{"node_modules", "target", "vendor", ".venv", "venv", "__pycache__", ".tox", "dist", "build", ".next", ".cache"}, name)
}

// Places are the protected places of workspaces as they were when FindPlaces looked.
type Places struct {
	Keep  []string `json:"keep,omitempty"`  // existing files and folders that stay read-only
	Pins  []string `json:"pins,omitempty"`  // folders that cannot be moved
	Links []string `json:"links,omitempty"` // links that cannot be replaced
	Fixed []string `json:"fixed,omitempty"` // what no folder above can be moved of
	Write []string `json:"-"`               // folders outside of the roots that belong to them: git's, of worktrees and submodules
	Whole bool     `json:"-"`               // everything was looked at

	guard   Guard
	found   map[string]place  // by path
	missing []string          // where links of protected places lead although there is nothing
	closed  map[string]string // what could not be looked at, by what identifies it
	missed  string            // why there may be more places than found; empty if there are not
}

// place is what was found at a path.
type place struct {
	info fs.FileInfo
	link string // where a link leads

	recorded *mark // instead of info, in places that were recorded
}

// FindPlaces looks for protected places. Folders that are too deep or too many are left out.
func FindPlaces(g Guard) Places {
	f := &finder{
		names: g.Names, last: g.Names.last(),
		places: Places{Whole: true, guard: g, found: map[string]place{}, closed: map[string]string{}},
		files:  severalNames{}, targets: map[string]bool{}, data: map[string]bool{},
	}
	f.roots = resolved(g.Roots)
	f.writable = resolved(append(g.Roots[:len(g.Roots):len(g.Roots)], g.write...))
	for _, root := range f.roots {
		f.folder(root, 0)
	}
	f.home()
	if !g.again {
		f.own()
		f.secondNames()
	}
	for _, common := range g.common {
		f.gitFolder(common)
	}
	p := f.places
	for _, list := range []*[]string{&p.Keep, &p.Pins, &p.Links, &p.Fixed} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	p.Keep = slices.DeleteFunc(p.Keep, func(at string) bool { return f.data[at] }) // git writes there
	return p
}

// Known says whether a protected place was found at a path.
func (p Places) Known(path string) bool {
	_, ok := p.found[path]
	return ok
}

// Root returns the folder that commands may write to and that a path is in: a workspace root, or
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
	last                  lastNames
	places                Places
	roots, writable       []string // links resolved
	folders, repositories int
	files                 severalNames
	targets               map[string]bool // of links, that were looked at
	data                  map[string]bool // folders of repositories
}

// folder looks at the entries of a folder, and at its subfolders.
func (f *finder) folder(dir string, depth int) {
	if !f.countFolder(dir) {
		return
	}
	defer f.open(dir)()
	bare, files := 0, []string(nil)
	for _, e := range f.list(dir) {
		name, at := e.Name(), filepath.Join(dir, e.Name())
		switch name {
		case "HEAD", "objects", "refs", "commondir": // the last leads git to the others
			bare++
		}
		git := Fold(name) == ".git"
		switch {
		case git && e.IsDir():
			f.repository(at)
		case git:
			f.keep(at)
			f.gitFile(at)
		case f.last.may(name) && f.names.Match(at):
			f.keep(at)
		case e.IsDir() && fetched(name) && !f.places.guard.again:
			f.shared(at)
		case e.IsDir() && (depth < maxDepth) && !skipped(name):
			f.folder(at, depth+1)
		case e.Type().IsRegular() && !f.places.guard.again:
			files = append(files, name)
		}
	}
	withSeveralNames(dir, files, func(name string, id nodeID, all uint64) {
		f.files.addNode(filepath.Join(dir, name), id, all, false)
	})
	if bare >= 2 { // a bare repository, also if a command has taken a part away
		f.gitFolder(dir)
	}
}

// Match says whether a path is one of the names.
func (n Names) Match(at string) bool {
	at = Fold(at)
	dir, name := path.Split(at)
	twoNames := path.Join(path.Base(dir), name)
	ends := func(of string) bool { return name == of || strings.Contains(of, "/") && strings.HasSuffix(at, "/"+of) }
	return slices.ContainsFunc(n.Folders, ends) || slices.ContainsFunc(n.Files, ends) ||
		slices.ContainsFunc(n.Patterns, func(pattern string) bool { ok, _ := path.Match(pattern, twoNames); return ok })
}

// keep notes a place that stays as it is, and what leads to it or away from it.
func (f *finder) keep(at string) {
	info, err := os.Lstat(at)
	if err != nil {
		return
	}
	f.pinParents(at)
	if info.Mode()&fs.ModeSymlink == 0 {
		f.places.found[at] = place{info: info}
		f.readOnly(at)
		f.content(at, info, 0)
		return
	}
	link, _ := os.Readlink(at)
	f.places.found[at] = place{info: info, link: link}
	f.target(at)
}

// pinParents keeps the hidden folders that a protected place is in from being moved away with it.
func (f *finder) pinParents(at string) {
	if !f.near() {
		return
	}
	for dir := filepath.Dir(at); strings.HasPrefix(filepath.Base(dir), "."); dir = filepath.Dir(dir) {
		f.places.Pins = append(f.places.Pins, dir)
	}
}

// repository notes what git obeys in the folder .git of a repository.
func (f *finder) repository(at string) {
	if !f.countRepository(at) {
		return
	}
	if info, err := os.Lstat(at); err == nil {
		f.places.found[at] = place{info: info}
	}
	f.dataFolder(at)
	f.gitFolder(at)
	f.configured(at, filepath.Dir(at))
}

// dataFolder keeps a folder from being moved that git writes to.
func (f *finder) dataFolder(dir string) {
	f.pin(dir)
	f.data[dir] = true
}

// gitFolder notes what git obeys in a folder with a repository's data.
func (f *finder) gitFolder(dir string) {
	defer f.open(dir)()
	for _, name := range []string{"hooks", "config", "config.worktree", "commondir"} {
		f.keep(filepath.Join(dir, name))
	}
	if info := f.folderOf(dir, "info"); info != "" {
		defer f.open(info)()
		f.keep(filepath.Join(info, "attributes"))
	}
	f.objects(dir)
	if worktrees := f.folderOf(dir, "worktrees"); worktrees != "" {
		defer f.open(worktrees)()
		for _, e := range f.list(worktrees) {
			f.worktree(filepath.Join(worktrees, e.Name()))
		}
	}
	f.modules(f.folderOf(dir, "modules"), 0)
}

// worktree notes the same in what a repository keeps of a linked worktree.
func (f *finder) worktree(dir string) {
	defer f.open(dir)()
	f.keep(filepath.Join(dir, "config.worktree"))
	// Git makes this file, and removes it with the worktree. Only another content leads it
	// elsewhere.
	common := filepath.Join(dir, "commondir")
	if _, err := os.Lstat(common); err == nil && strings.TrimSpace(smallFile(common)) != plainCommonDir {
		f.keep(common)
	}
}

// plainCommonDir is what git writes into the file commondir of a linked worktree.
const plainCommonDir = "../.."

// modules notes the same for the repositories of submodules, whose names may have slashes.
func (f *finder) modules(dir string, depth int) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || depth > maxDepth || !f.countFolder(dir) {
		return
	}
	defer f.open(dir)()
	entries := f.list(dir)
	// One of them is enough: a command may have removed the others.
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return slices.Contains([]string{"HEAD", "config", "hooks", "objects", "refs"}, e.Name())
	}) {
		if f.countRepository(dir) {
			f.gitFolder(dir)
		}
		return
	}
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			f.modules(f.folderOf(dir, e.Name()), depth+1)
		}
	}
}

// gitFile notes the repository that a file .git leads to: that of a linked worktree or of a
// submodule. Only a repository that says itself that the folder belongs to it may be written to.
func (f *finder) gitFile(at string) {
	target, ok := strings.CutPrefix(strings.TrimSpace(smallFile(at)), "gitdir:")
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
	if back := smallFile(filepath.Join(dir, "gitdir")); back != "" && filepath.Base(filepath.Dir(dir)) == "worktrees" {
		if !same(strings.TrimSpace(back), at) {
			return
		}
		common = filepath.Dir(filepath.Dir(dir))
	} else if !leadsBack(dir, filepath.Dir(at)) {
		return
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(common, part)); err != nil {
			return
		}
	}
	f.places.Write, f.writable = append(f.places.Write, common), append(f.writable, common)
	f.dataFolder(common)
	f.fix(common)
	f.gitFolder(common)
	f.configured(common, filepath.Dir(at))
	if common != dir { // they say which repository it is, and git does not write to them again
		f.keep(filepath.Join(dir, "commondir"))
		f.keep(filepath.Join(dir, "gitdir"))
	}
}

func same(a, b string) bool {
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

// leadsBack says whether a repository's configuration names a folder as its work tree, as that of
// a submodule does.
func leadsBack(dir, tree string) bool {
	for line := range strings.Lines(smallFile(filepath.Join(dir, "config"))) {
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), "worktree") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if !filepath.IsAbs(value) {
			value = filepath.Join(dir, value)
		}
		return same(value, tree)
	}
	return false
}
