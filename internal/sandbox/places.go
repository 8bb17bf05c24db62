package sandbox

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Names says which files and folders commands must not change wherever they are in a workspace:
// programs run what is in them, or take orders from it. They are compared in lower case, a name
// with slashes with the end of a path.
type Names struct {
	Folders  []string
	Files    []string
	Patterns []string // of the last two names of a file (path.Match)
}

// Bounds of a search for protected places: below so many folders, in so many, and so many
// repositories.
const (
	maxDepth        = 4
	maxFolders      = 5000
	maxRepositories = 200
)

// skipped are folders that hold what tools fetch or build.
func skipped(name string) bool {
	return slices.Contains([]string{"node_modules", "target", "vendor", ".venv", "venv", "__pycache__", ".tox", "dist", "build", ".next", ".cache"}, name)
}

// Places are the protected places of workspaces as they were when FindPlaces looked.
type Places struct {
	Keep  []string `json:"keep,omitempty"` // existing files and folders that stay read-only
	Pins  []string `json:"pins,omitempty"` // folders that cannot be moved
	Write []string `json:"-"`              // folders outside of the roots that belong to them: git's, of worktrees and submodules
	Whole bool     `json:"-"`              // everything was looked at

	guard Guard
	found map[string]place // by path
}

// place is what was found at a path.
type place struct {
	info fs.FileInfo
	link string // where a link leads
}

// FindPlaces looks for protected places. Folders that are too deep or too many are left out.
func FindPlaces(g Guard) Places {
	f := &finder{names: g.Names, places: Places{Whole: true, guard: g, found: map[string]place{}}}
	for _, root := range g.Roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			f.folder(real, 0)
		}
	}
	p := f.places
	slices.Sort(p.Keep)
	slices.Sort(p.Pins)
	p.Keep, p.Pins = slices.Compact(p.Keep), slices.Compact(p.Pins)
	p.Keep = slices.DeleteFunc(p.Keep, func(at string) bool {
		_, pinned := slices.BinarySearch(p.Pins, at)
		return pinned
	})
	return p
}

// Since returns the places that are new since these were found, or other files than then, or that
// do not look like a protected place any more. What is below one of them is not listed. A place
// that moved with the folder that it is in is not new: it is read-only where it is now.
func (p Places) Since() []string {
	if p.found == nil {
		return nil
	}
	var out, gone []string
	now := FindPlaces(p.guard).found
	for path, old := range p.found {
		if _, ok := now[path]; ok {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			out = append(out, path)
		} else if old.link == "" {
			gone = append(gone, path)
		}
	}
	for path, is := range now {
		old, ok := p.found[path]
		moved := func(from string) bool { return os.SameFile(p.found[from].info, is.info) }
		if ok && (!os.SameFile(old.info, is.info) || old.link != is.link) || !ok && !slices.ContainsFunc(gone, moved) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	var top []string
	for _, path := range out {
		if len(top) == 0 || !strings.HasPrefix(path, top[len(top)-1]+"/") {
			top = append(top, path)
		}
	}
	return top
}

// Root returns the workspace root that a path is in.
func (p Places) Root(path string) (root string, ok bool) {
	for _, r := range p.guard.Roots {
		if real, err := filepath.EvalSymlinks(r); err == nil && strings.HasPrefix(path, real+"/") && len(real) > len(root) {
			root = real
		}
	}
	return root, root != ""
}

type finder struct {
	names                 Names
	places                Places
	folders, repositories int
}

// folder looks at the entries of a folder, and at its subfolders.
func (f *finder) folder(dir string, depth int) {
	if f.folders++; f.folders > maxFolders {
		f.places.Whole = false
		return
	}
	entries, err := readDir(dir)
	if err != nil {
		return
	}
	bare := 0
	for _, e := range entries {
		name, at := e.Name(), filepath.Join(dir, e.Name())
		switch name {
		case "HEAD", "objects", "refs":
			bare++
		}
		switch {
		case name == ".git" && e.IsDir():
			f.repository(at)
		case name == ".git":
			f.keep(at)
			f.gitFile(at)
		case f.names.Match(at):
			f.keep(at)
		case e.IsDir() && (depth < maxDepth) && !skipped(name):
			f.folder(at, depth+1)
		}
	}
	if bare >= 2 { // a bare repository, also if a command has taken a part away
		f.gitFolder(dir)
	}
}

// readDir lists a folder without sorting it.
func readDir(dir string) ([]os.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// Match says whether a path is one of the names.
func (n Names) Match(at string) bool {
	at = strings.ToLower(at)
	dir, name := path.Split(at)
	twoNames := path.Join(path.Base(dir), name)
	ends := func(of string) bool { return name == of || strings.Contains(of, "/") && strings.HasSuffix(at, "/"+of) }
	return slices.ContainsFunc(n.Folders, ends) || slices.ContainsFunc(n.Files, ends) ||
		slices.ContainsFunc(n.Patterns, func(pattern string) bool { ok, _ := path.Match(pattern, twoNames); return ok })
}

// keep notes a place that stays as it is. A link cannot be made read-only, only the file that it
// leads to; the link is compared afterwards.
func (f *finder) keep(at string) {
	info, err := os.Lstat(at)
	if err != nil {
		return
	}
	f.pinParents(at)
	if info.Mode()&fs.ModeSymlink == 0 {
		f.places.found[at] = place{info: info}
		f.places.Keep = append(f.places.Keep, at)
		return
	}
	link, _ := os.Readlink(at)
	f.places.found[at] = place{info, link}
	// Not a folder that a link leads to: it may be the whole workspace.
	if real, err := filepath.EvalSymlinks(at); err == nil {
		if info, err := os.Lstat(real); err == nil && info.Mode().IsRegular() {
			f.places.Keep = append(f.places.Keep, real)
		}
	}
}

// pinParents keeps the hidden folders that a protected place is in from being moved away with it.
func (f *finder) pinParents(at string) {
	for dir := filepath.Dir(at); strings.HasPrefix(filepath.Base(dir), "."); dir = filepath.Dir(dir) {
		f.places.Pins = append(f.places.Pins, dir)
	}
}

// repository notes what git obeys in the folder .git of a repository.
func (f *finder) repository(at string) {
	if f.repositories++; f.repositories > maxRepositories {
		f.places.Whole = false
		return
	}
	if info, err := os.Lstat(at); err == nil {
		f.places.found[at] = place{info: info}
	}
	f.places.Pins = append(f.places.Pins, at)
	f.gitFolder(at)
}

// gitFolder notes what git obeys in a folder with a repository's data.
func (f *finder) gitFolder(dir string) {
	for _, name := range []string{"hooks", "config", "config.worktree", "commondir"} {
		f.keep(filepath.Join(dir, name))
	}
	info := filepath.Join(dir, "info")
	if st, err := os.Lstat(info); err == nil && st.IsDir() {
		f.places.Pins = append(f.places.Pins, info)
		f.keep(filepath.Join(info, "attributes"))
	}
	worktrees := filepath.Join(dir, "worktrees")
	entries, _ := readDir(worktrees)
	for _, e := range entries {
		at := filepath.Join(worktrees, e.Name())
		f.keep(filepath.Join(at, "config.worktree"))
		// Git makes this file, and removes it with the worktree. Only another content leads it
		// elsewhere.
		if common, err := os.ReadFile(filepath.Join(at, "commondir")); err == nil && string(bytes.TrimSpace(common)) != "../.." {
			f.keep(filepath.Join(at, "commondir"))
		}
	}
	f.modules(filepath.Join(dir, "modules"), 0)
}

// modules notes the same for the repositories of submodules, whose names may have slashes.
func (f *finder) modules(dir string, depth int) {
	entries, err := readDir(dir)
	if err != nil || depth > maxDepth {
		return
	}
	f.places.Pins = append(f.places.Pins, dir)
	// One of them is enough: a command may have removed the others.
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return slices.Contains([]string{"HEAD", "config", "hooks", "objects", "refs"}, e.Name())
	}) {
		if f.repositories++; f.repositories > maxRepositories {
			f.places.Whole = false
			return
		}
		f.gitFolder(dir)
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			f.modules(filepath.Join(dir, e.Name()), depth+1)
		}
	}
}

// gitFile notes the repository that a file .git leads to: that of a linked worktree or of a
// submodule. Only a repository that says itself that the folder belongs to it may be written to.
func (f *finder) gitFile(at string) {
	text, err := os.ReadFile(at)
	target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if err != nil || !ok {
		return
	}
	dir := strings.TrimSpace(target)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(at), dir)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return
	}
	common := dir
	if back, err := os.ReadFile(filepath.Join(dir, "gitdir")); err == nil && filepath.Base(filepath.Dir(dir)) == "worktrees" {
		if !same(strings.TrimSpace(string(back)), at) {
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
	f.places.Write = append(f.places.Write, common)
	if filepath.Base(common) == ".git" {
		f.places.Pins = append(f.places.Pins, common)
	}
	f.gitFolder(common)
}

func same(a, b string) bool {
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

// leadsBack says whether a repository's configuration names a folder as its work tree, as that of
// a submodule does.
func leadsBack(dir, tree string) bool {
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(config)) {
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
