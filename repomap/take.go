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
func (u *updating) list(ctx context.Context, focus Focus) bool {
	t := u.t
	if u.x.opts.Files == nil {
		return false
	}
	l, ok := u.x.opts.Files(ctx, t.root, t.mark)
	if !ok {
		return false
	}
	asked, n := t.askedFolders(focus), 0
	for f := range l.Folders() {
		p := part{path: f.Path}
		kept, known := t.dirs[f.Path]
		if known && !f.Changed && !asked(f.Path) {
			p.kept = kept
		} else {
			p.look = u.candidates(f)
		}
		if n += len(p.kept) + len(p.look); n > maxFiles { // only a walk determines which files are within the limit
			u.folders = nil
			return false
		}
		u.folders = append(u.folders, p)
	}
	u.listing = l
	for i := range u.folders {
		p := &u.folders[i]
		for files := range slices.Chunk(p.look, batch) {
			p.jobs = append(p.jobs, u.send(files))
		}
	}
	return true
}

// askedFolders returns a function that reports whether a folder is named in a focus, contains a
// file that is, or is below such a folder. These folders are always checked on the disk.
func (t *tree) askedFolders(f Focus) func(folder string) bool {
	asked := map[string]bool{}
	for _, p := range f.Paths {
		rel := t.relative(p)
		asked[rel] = true
		asked[path.Dir(rel)] = true
	}
	return func(folder string) bool {
		dir := strings.TrimSuffix(folder, "/")
		if dir == "" {
			dir = "."
		}
		return asked[dir]
	}
}

// candidates returns the files of a folder that may be part of a map.
func (u *updating) candidates(f workspace.Folder) (out []candidate) {
	for name := range f.Names() {
		rel := f.Path + name
		if c, ok := u.candidate(rel); ok {
			c.path, c.odd = filepath.Join(u.t.root, filepath.FromSlash(rel)), true
			out = append(out, c)
		}
	}
	return out
}

// take replaces the known files of a tree with the result of an update.
func (t *tree) take(u *updating) {
	order, read, known := u.found()
	before := len(t.files)
	gone := before - known
	if len(read) == 0 && gone == 0 && len(t.order) == before {
		return
	}
	t.dirty += len(read) + gone
	put := read
	if gone > 0 {
		t.files, put = make(map[string]*file, len(order)), order
	}
	for _, f := range put {
		t.files[f.path] = f
	}
	// The order of a walk is almost the order of paths.
	slices.SortFunc(order, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	t.order = order
	t.link(read, before, gone > 0, u.x.opts.Workers)
}

// link updates the links between files. changed are the files that were read again, before is the
// former number of files.
func (t *tree) link(changed []*file, before int, gone bool, workers int) {
	t.names.link(t.order, changed, before, workers)
	// If the set of files has changed, all numbers have; and a changed file that re-exports names
	// affects the links of others.
	if t.mods == nil || gone || len(t.order) != before || slices.ContainsFunc(changed, passesOn) {
		t.mods, changed = newModules(t.order), t.order
	}
	for _, f := range changed {
		f.imports = t.mods.resolve(f)
	}
}

// found returns all files, the files that were read, and how many of all files are unchanged or
// replace an earlier version.
func (u *updating) found() (order, read []*file, known int) {
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
		order = append(order, p.kept...)
		known += len(p.kept)
		for _, j := range p.jobs {
			add(j)
		}
		if p.kept == nil {
			p.kept = slices.Clone(order[from:])
		}
		dirs[p.path] = p.kept
	}
	t.mark, t.dirs = u.listing.Mark(), dirs
	return order, read, known
}
