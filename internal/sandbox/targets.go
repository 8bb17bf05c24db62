package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinkDepth bounds how deep links are looked for in a protected folder.
const maxLinkDepth = 2

// target keeps what a link leads to that is a protected place, or in one: programs that follow the
// link obey it. The links on the way stay where they are, and so do the folders that they and the
// target are in.
func (f *finder) target(link string) {
	way := Follow(link)
	f.hold(way)
	if f.surrounds(way.Real, link) || !f.mayWrite(way.Real) {
		return // neither the whole workspace nor the folder that the link is in can be read-only
	}
	info, err := os.Lstat(way.Real)
	switch {
	case err != nil:
		f.places.missing = append(f.places.missing, way.Real)
	case info.IsDir() && filepath.Base(link) == ".git":
		f.repository(way.Real)
	case !f.targets[way.Real]:
		f.targets[way.Real] = true
		f.readOnly(way.Real)
		f.content(way.Real, info, 0)
	}
}

// hold keeps the links of a way, and all folders above them and its target, from being replaced. The
// first link may move with the folder that it is in, as every protected place may.
func (f *finder) hold(way Way) {
	if f.near() {
		f.places.Links = append(f.places.Links, way.Links...)
	}
	f.fix(way.Real)
	if len(way.Links) > 1 {
		f.fix(way.Links[1:]...)
	}
}

// surrounds says whether a folder has a workspace root, or a place, in it.
func (f *finder) surrounds(dir, place string) bool {
	return within(dir, place) || slices.ContainsFunc(f.roots, func(root string) bool { return within(dir, root) })
}

// mayWrite says whether a child may write to what is at a path, were it not protected.
func (f *finder) mayWrite(at string) bool {
	return slices.ContainsFunc(f.writable, func(dir string) bool { return within(dir, at) })
}

// content notes by what else a protected place could be changed: where links in it lead, and
// other names of its files.
func (f *finder) content(at string, info fs.FileInfo, depth int) {
	if !info.IsDir() {
		f.files.add(at, info, true)
		return
	}
	if !f.countFolder(at) {
		return
	}
	defer f.open(at)()
	for _, e := range f.list(at) {
		path := filepath.Join(at, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			f.target(path)
		case e.IsDir() && (depth >= maxLinkDepth || skipped(e.Name())):
		default:
			if info, err := e.Info(); err == nil {
				f.content(path, info, depth+1)
			}
		}
	}
}

// folderOf returns a folder in a git folder, wherever a link leads it, and keeps it from being moved
// away. It is empty if that is not a folder.
func (f *finder) folderOf(dir, name string) string {
	way := Follow(filepath.Join(dir, name))
	info, err := os.Lstat(way.Real)
	if len(way.Links) > 0 {
		f.hold(way)
		if err != nil && f.mayWrite(way.Real) {
			f.places.missing = append(f.places.missing, way.Real)
		}
	}
	if err != nil || !info.IsDir() {
		return ""
	}
	f.dataFolder(way.Real)
	return way.Real
}

// objects keeps what names further folders of objects, and packs that a clone on this machine shares
// with another repository. Git itself never writes to a pack.
func (f *finder) objects(dir string) {
	way := Follow(filepath.Join(dir, "objects", "info", "alternates"))
	if _, err := os.Lstat(way.Real); err == nil {
		f.hold(way)
		f.keep(way.Real)
	}
	packs := filepath.Join(dir, "objects", "pack")
	entries, _ := readDir(packs)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			if _, names := linkCount(info); names > 1 && info.Mode().IsRegular() {
				f.readOnly(filepath.Join(packs, e.Name()))
			}
		}
	}
}

// configured keeps what a repository's configuration names that git runs or obeys: a folder of
// hooks, and further configuration.
func (f *finder) configured(dir, tree string) {
	for _, file := range []string{"config", "config.worktree"} {
		file = filepath.Join(dir, file)
		for base, key := range map[string]string{tree: "hookspath", filepath.Dir(Follow(file).Real): "path"} {
			for _, at := range settingsOf(file, key) {
				if !filepath.IsAbs(at) {
					at = filepath.Join(base, at)
				}
				if way := Follow(at); f.mayWrite(way.Real) && !f.surrounds(way.Real, dir) {
					f.keep(at)
					f.fix(at)
				}
			}
		}
	}
}

// settingsOf returns the values of a key in a configuration of git, whatever their section is.
func settingsOf(file, key string) (values []string) {
	for line := range strings.Lines(smallFile(file)) {
		name, value, ok := strings.Cut(line, "=")
		if end := strings.IndexByte(name, ']'); end >= 0 { // on the line of its section
			name = name[end+1:]
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if ok && value != "" && strings.EqualFold(strings.TrimSpace(name), key) {
			values = append(values, value)
		}
	}
	return values
}
