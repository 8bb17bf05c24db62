package search

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/linesearch"
	"github.com/seed-dec29ce4/eca/workspace"
)

// batch is a sequence of files in the order of the tree.
type batch struct {
	files      []workspace.File
	results    results
	err        error
	panicValue any           // the value of a panic
	done       chan struct{} // closed when the batch has been searched
}

const (
	batchFiles = 32
	maxAhead   = 16 // batches that may be searched ahead of the first unfinished one
)

// searchTree searches the files below a folder in parallel, and returns the first results in the order of
// the tree. more reports whether there are more than a.MaxResults. A symlink is searched if its
// target is in within.
func searchTree(ctx context.Context, dir string, within *workspace.Workspace, p *linesearch.Pattern, a grepArgs) (found string, more bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var (
		work    = make(chan *batch)
		ordered = make(chan *batch, maxAhead)
		walked  = &batch{done: make(chan struct{})} // marks the end of the walk
	)
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			s := newScanner(p, a.OutputMode, a.MaxResults+1)
			for b := range work {
				s.batch(ctx, b, within)
			}
		})
	}
	running.Go(func() {
		defer close(ordered)
		defer close(work)
		defer close(walked.done)
		defer func() { walked.panicValue = recover() }()
		walked.err = produce(ctx, dir, a.Include, work, ordered)
	})
	var out [][]byte
	for left := a.MaxResults; ; {
		b, ok := <-ordered
		if !ok {
			break
		}
		<-b.done
		if b.panicValue != nil {
			panic(b.panicValue) // re-raised on the caller's goroutine
		}
		if b.err != nil {
			return "", false, b.err
		}
		out = append(out, b.results.first(left))
		if left -= len(b.results.ends); left < 0 {
			return concat(out), true, nil
		}
	}
	<-walked.done
	if walked.panicValue != nil {
		panic(walked.panicValue)
	}
	return concat(out), false, walked.err
}

// concat concatenates the pieces with a single allocation.
func concat(pieces [][]byte) string {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	var out strings.Builder
	out.Grow(size)
	for _, p := range pieces {
		out.Write(p)
	}
	return out.String()
}

// produce walks a tree and distributes its files in batches. Each batch is sent to work before
// ordered.
func produce(ctx context.Context, dir, include string, work, ordered chan<- *batch) error {
	var files []workspace.File
	flush := func() error {
		if len(files) == 0 {
			return nil
		}
		b := &batch{files: slices.Clone(files), done: make(chan struct{})}
		files = files[:0]
		select {
		case ordered <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case work <- b:
			return nil
		case <-ctx.Done():
			b.err = ctx.Err()
			close(b.done)
			return ctx.Err()
		}
	}
	err := workspace.Walk(ctx, dir, func(f workspace.File) error {
		if f.Dir || !included(include, f.Rel) {
			return nil
		}
		if files = append(files, f); len(files) == batchFiles {
			return flush()
		}
		return nil
	})
	return errors.Join(err, flush())
}

// batch searches the files of a batch.
func (s *scanner) batch(ctx context.Context, b *batch, within *workspace.Workspace) {
	defer close(b.done)
	defer func() { b.panicValue = recover() }()
	b.results.text = make([]byte, 0, s.lastBatchBytes) // batches have results of similar size
	defer func() { s.lastBatchBytes = len(b.results.text) }()
	for _, f := range b.files {
		// A symlink may lead outside the search.
		if !f.Regular && !within.Contains(f.Path) {
			continue
		}
		if b.err = s.file(ctx, &b.results, f.Path, !f.Regular); b.err != nil || len(b.results.ends) >= s.limit {
			return
		}
		if b.err = ctx.Err(); b.err != nil {
			return
		}
	}
}
