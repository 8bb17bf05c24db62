package repomap

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// list queues the files that may have changed according to notifications; it returns false if
// notifications are unavailable.
func (u *updateRun) list(ctx context.Context, focus Focus) bool {
	t := u.t
	if u.x.opts.Files == nil {
		return false
	}
	l, ok := u.x.opts.Files(ctx, t.root, t.mark)
	if !ok {
		return false
	}
	isRequested, n := t.requestedFolders(focus), 0
	for f := range l.Folders() {
		p := folderUpdate{path: f.Path}
		files, known := t.dirs[f.Path]
		if known && !f.Changed && !isRequested(f.Path) {
			p.unchanged = files
		} else {
			p.candidates = u.candidates(f)
		}
		if n += len(p.unchanged) + len(p.candidates); n > maxFiles { // only a walk determines which files are within the limit
			u.folders = nil
			return false
		}
		u.folders = append(u.folders, p)
	}
	u.listing = l
	for i := range u.folders {
		p := &u.folders[i]
		for files := range slices.Chunk(p.candidates, batch) {
			p.jobs = append(p.jobs, u.send(files))
		}
	}
	return true
}

// requestedFolders returns a function that reports whether a focus names a folder, or a file or
// folder directly in it. An update always checks these folders on the disk.
func (t *tree) requestedFolders(f Focus) func(folder string) bool {
	requested := map[string]bool{}
	for _, p := range f.Paths {
		rel := t.relative(p)
		requested[rel] = true
		requested[path.Dir(rel)] = true
	}
	return func(folder string) bool {
		dir := strings.TrimSuffix(folder, "/")
		if dir == "" {
			dir = "."
		}
		return requested[dir]
	}
}

// candidates returns the files of a folder that may be part of a map.
func (u *updateRun) candidates(f workspace.Folder) (out []candidate) {
	for name := range f.Names() {
		rel := f.Path + name
		if c, ok := u.candidate(rel); ok {
			c.path, c.maybeIrregular = filepath.Join(u.t.root, filepath.FromSlash(rel)), true
			out = append(out, c)
		}
	}
	return out
}

// apply replaces the known files of a tree with the result of an update.
func (t *tree) apply(u *updateRun) {
	order, read, known := u.result()
	before := len(t.files)
	removed := before - known
	if len(read) == 0 && removed == 0 && len(t.order) == before {
		return
	}
	t.dirty += len(read) + removed
	changed := read
	if removed > 0 {
		t.files, changed = make(map[string]*file, len(order)), order
	}
	for _, f := range changed {
		t.files[f.path] = f
	}
	// The order of a walk is almost the order of paths.
	slices.SortFunc(order, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	t.order = order
	t.link(read, before, removed > 0, u.x.opts.Workers)
}

// link updates the links between files. changed are the files that were read again, before is the
// former number of files.
func (t *tree) link(changed []*file, before int, removed bool, workers int) {
	t.names.link(t.order, changed, before, workers)
	// If the set of files has changed, so have the numbers of all files. A changed file that
	// re-exports names affects the links of other files.
	if t.mods == nil || removed || len(t.order) != before || slices.ContainsFunc(changed, reexports) {
		t.mods, changed = newModules(t.order), t.order
	}
	for _, f := range changed {
		f.imports = t.mods.resolve(f)
	}
}

// result returns all files, the files that were read, and the number of files that the tree already
// had, changed or not.
func (u *updateRun) result() (order, read []*file, known int) {
	t := u.t
	add := func(j *job) {
		for _, f := range j.found {
			if f == nil {
				continue
			}
			order = append(order, f)
			old := t.files[f.path]
			if old != nil {
				known++
			}
			if old != f {
				read = append(read, f)
			}
		}
	}
	if u.listing == nil {
		t.mark, t.dirs = workspace.Mark{}, nil
		for _, j := range u.all {
			add(j)
		}
		return order, read, known
	}
	order = make([]*file, 0, len(t.order)+16)
	dirs := make(map[string][]*file, len(u.folders))
	for _, p := range u.folders {
		from := len(order)
		order = append(order, p.unchanged...)
		known += len(p.unchanged)
		for _, j := range p.jobs {
			add(j)
		}
		if p.unchanged == nil {
			p.unchanged = slices.Clone(order[from:])
		}
		dirs[p.path] = p.unchanged
	}
	t.mark, t.dirs = u.listing.Mark(), dirs
	return order, read, known
}
