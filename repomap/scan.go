package repomap

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/bug"
	"github.com/seed-dec29ce4/eca/repomap/lang"
	"github.com/seed-dec29ce4/eca/workspace"
)

// racy is how old a file must be for its time to tell of every later change: clocks of
// file systems are coarse.
const racy = 2 * time.Second

// batch is how many files a worker takes at once.
const batch = 32

// candidate is a file that may be source code.
type candidate struct {
	rel, path string
	lang      *lang.Language // nil: its first line tells
}

// update brings a tree up to date with the disk.
func (x *Index) update(ctx context.Context, t *tree) error {
	if !t.loaded {
		t.loaded = true
		x.load(t)
	}
	log := x.readLog(ctx, t)
	defer log.wait()

	u := &updating{x: x, t: t, jobs: make(chan []candidate, 64)}
	var workers sync.WaitGroup
	for range x.opts.Workers {
		workers.Go(func() { u.work(ctx) })
	}
	cut, err := u.walk(ctx)
	close(u.jobs)
	workers.Wait()
	if err != nil {
		for _, f := range u.read { // it need not be read again
			t.files[f.path] = f
		}
		t.order, t.names = nil, names{} // what is linked is not what is known
		return err
	}
	t.cut = cut
	t.take(u)
	t.log = log.wait()
	t.log.since(t.order)
	return nil
}

// updating is one look at the disk.
type updating struct {
	x    *Index
	t    *tree
	jobs chan []candidate

	mu   sync.Mutex // guards what follows
	same []*file    // as they were
	read []*file    // read anew
}

func (u *updating) walk(ctx context.Context) (cut bool, err error) {
	var next []candidate
	n := 0
	err = workspace.Walk(ctx, u.t.root, func(f workspace.File) error {
		if f.Dir {
			return nil
		}
		l, maybe := u.x.langs().Of(f.Rel)
		if l == nil && !maybe {
			return nil
		}
		if n++; n > maxFiles {
			cut = true
			return filepath.SkipAll
		}
		if next = append(next, candidate{f.Rel, f.Path, l}); len(next) == batch {
			u.jobs <- next
			next = nil
		}
		return nil
	})
	if len(next) > 0 {
		u.jobs <- next
	}
	return cut, err
}

func (u *updating) work(ctx context.Context) {
	var s lang.Scanner
	var buf []byte
	var same, read []*file
	for list := range u.jobs {
		for _, c := range list {
			if ctx.Err() != nil {
				break // and drain the jobs
			}
			size, mtime, ok := stat(c.path)
			if !ok {
				continue
			}
			if old := u.t.files[c.rel]; old != nil && old.size == size && old.mtime == mtime && !old.racy {
				same = append(same, old)
				continue
			}
			if f := u.scan(&s, c, size, &buf); f != nil {
				f.mtime, f.racy = mtime, u.x.opts.Now().Sub(time.Unix(0, mtime)) < racy
				read = append(read, f)
			}
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.same, u.read = append(u.same, same...), append(u.read, read...)
}

// scan reads one file; nil if it can not be read. What is no source code is remembered
// without a language, so that it is not read again.
func (u *updating) scan(s *lang.Scanner, c candidate, size int64, buf *[]byte) (f *file) {
	src, err := read(c.path, size, buf)
	if err != nil {
		return nil
	}
	f = &file{path: c.rel, size: size, lang: c.lang}
	if f.lang == nil {
		f.lang = u.x.langs().OfScript(src)
	}
	if f.lang == nil || workspace.IsBinary(src) {
		f.lang = nil
		return f
	}
	defer func() {
		if p := recover(); p != nil {
			f.defs, f.uses = nil, nil
			bug.Reportf("the outline of %s panicked: %v", c.path, p)
		}
	}()
	f.role = roleOf(c.rel, src)
	f.defs, f.uses = s.Scan(f.lang, src)
	f.localise()
	return f
}

// read reads a file into a buffer that is used again.
func read(path string, size int64, buf *[]byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	*buf = slices.Grow((*buf)[:0], int(size)+1)[:size]
	n, err := io.ReadFull(f, *buf)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF { //nolint:errorlint // ReadFull returns them as they are
		return nil, err
	}
	return (*buf)[:n], nil
}

// take puts what was found in place of what was known.
func (t *tree) take(u *updating) {
	if len(u.read) == 0 && len(u.same) == len(t.files) && len(t.order) == len(t.files) {
		return
	}
	t.dirty += len(u.read) + len(t.files) - len(u.same)
	old := t.files
	t.files = make(map[string]*file, len(u.same)+len(u.read))
	t.order = append(append(make([]*file, 0, len(u.same)+len(u.read)), u.same...), u.read...)
	for _, f := range t.order {
		t.files[f.path] = f
	}
	slices.SortFunc(t.order, func(a, b *file) int {
		if a.path < b.path {
			return -1
		}
		return 1
	})
	t.names.link(t.order, u.read, len(old), u.x.opts.Workers)
}
