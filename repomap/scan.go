package repomap

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/bug"
	"github.com/seed-dec29ce4/eca/repomap/lang"
	"github.com/seed-dec29ce4/eca/workspace"
)

// racyAge is the minimum age of a modification time that proves that a file is unchanged. File systems
// have coarse clocks: two changes within a shorter time may get the same modification time.
const racyAge = 2 * time.Second

// batch is the number of files that a worker takes at a time.
const batch = 32

// candidate is a file that may be part of a map.
type candidate struct {
	rel, path      string
	lang           *lang.Language // nil if its first line determines the language
	landmark       bool           // it is a landmark, shown by its name
	maybeIrregular bool           // it may be a symlink, a device or similar
}

// job is a batch of files for a worker.
type job struct {
	files []candidate
	found []*file // by candidate; nil for a file that cannot be read or is too large
}

// update synchronizes a tree with the disk.
func (x *Index) update(ctx context.Context, t *tree, focus Focus) error {
	first := !t.loaded
	if first {
		t.loaded = true
		x.load(t)
	}
	log := x.readLog(ctx, t)
	defer log.wait() // also after an error: git must not outlive the update

	u := &updateRun{x: x, t: t, jobs: make(chan *job, 64)}
	var workers sync.WaitGroup
	for range x.opts.Workers {
		workers.Go(func() { u.work(ctx) })
	}
	var cut bool
	var err error
	if first || !u.list(ctx, focus) {
		cut, err = u.walk(ctx)
	}
	close(u.jobs)
	workers.Wait()
	if err == nil {
		err = ctx.Err() // workers skip files after ctx ended
	}
	if err != nil {
		for _, j := range u.all { // keep the files that were read
			for _, f := range j.found {
				if f != nil {
					t.files[f.path] = f
				}
			}
		}
		t.order, t.names, t.mods = nil, names{}, nil // the links are outdated
		t.mark, t.dirs = workspace.Mark{}, nil
		return err
	}
	t.cut = cut
	t.apply(u)
	t.history = log.wait()
	t.history.findRecent(t.order)
	return nil
}

// updateRun is one run of update.
type updateRun struct {
	x    *Index
	t    *tree
	jobs chan *job
	all  []*job // in the order of the walk

	// From a listing; nil after a walk.
	listing *workspace.Listing
	folders []folderUpdate
}

// folderUpdate is the content of one folder.
type folderUpdate struct {
	path       string
	unchanged  []*file // the known files, if unchanged; nil if the files are checked
	candidates []candidate
	jobs       []*job
}

// send queues files for the workers.
func (u *updateRun) send(files []candidate) *job {
	j := &job{files: files, found: make([]*file, len(files))}
	u.all = append(u.all, j)
	u.jobs <- j
	return j
}

// candidate reports whether a file may be part of a map.
func (u *updateRun) candidate(rel string) (c candidate, ok bool) {
	l, maybe := u.x.languages().Of(rel)
	mark := l == nil && isLandmark(rel)
	return candidate{rel: rel, lang: l, landmark: mark}, l != nil || maybe || mark
}

func (u *updateRun) walk(ctx context.Context) (cut bool, err error) {
	var next []candidate
	n := 0
	err = workspace.Walk(ctx, u.t.root, func(f workspace.File) error {
		if !f.Regular {
			return nil
		}
		c, ok := u.candidate(f.Rel)
		if !ok {
			return nil
		}
		if n++; n > maxFiles {
			cut = true
			return filepath.SkipAll
		}
		c.path = f.Path
		if next = append(next, c); len(next) == batch {
			u.send(next)
			next = make([]candidate, 0, batch)
		}
		return nil
	})
	if len(next) > 0 {
		u.send(next)
	}
	return cut, err
}

func (u *updateRun) work(ctx context.Context) {
	var s lang.Scanner
	var buf []byte
	for j := range u.jobs {
		for i, c := range j.files {
			if ctx.Err() != nil {
				break // and drain the jobs
			}
			j.found[i] = u.readIfChanged(&s, c, &buf)
		}
	}
}

// readIfChanged returns the known file if it is unchanged, otherwise it reads the file.
func (u *updateRun) readIfChanged(s *lang.Scanner, c candidate, buf *[]byte) *file {
	old := u.t.files[c.rel]
	if old != nil || c.landmark || c.maybeIrregular {
		size, mtime, ok := stat(c.path)
		switch {
		case !ok:
			return nil
		case old != nil && old.size == size && old.mtime == mtime && !old.racy:
			return old
		case c.landmark:
			return &file{path: c.rel, size: size, mtime: mtime, landmark: true, role: roleOf(c.rel, nil)}
		}
	}
	src, size, mtime, ok := read(c.path, buf)
	if !ok {
		return nil
	}
	f := u.scan(s, c, src)
	f.size, f.mtime, f.racy = size, mtime, u.x.opts.Now().Sub(time.Unix(0, mtime)) < racyAge
	return f
}

// scan reads one file. A file that is not source code is stored without a language, so that it is
// not read again.
func (u *updateRun) scan(s *lang.Scanner, c candidate, src []byte) (f *file) {
	f = &file{path: c.rel, lang: c.lang}
	if f.lang == nil {
		f.lang = u.x.languages().OfScript(src)
	}
	if f.lang == nil || workspace.IsBinary(src) {
		f.lang = nil
		return f
	}
	defer func() {
		if p := recover(); p != nil {
			f.defs, f.uses = nil, lang.Uses{}
			bug.Reportf("the outline of %s panicked: %v", c.path, p)
		}
	}()
	f.role = roleOf(c.rel, src)
	f.defs, f.uses = s.Scan(f.lang, src)
	for i := range f.defs {
		f.main = f.main || isMain(&f.defs[i])
	}
	f.saltPrivateUses()
	return f
}
