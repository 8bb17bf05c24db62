package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/internal/watch"
)

// maxWatched limits the number of watched folders.
const maxWatched = 500

// watchRuns evaluates the manifest once, and again whenever a file in or below its folder changes,
// until it is interrupted. The exit code is that of the last run.
func watchRuns(ctx context.Context, f runFlags, s streams) error {
	w := watch.New(func(err error) { fmt.Fprintln(s.err, "warning:", err) })
	defer w.Close()
	w.Set(f.watched())
	select { // skip the change that Set itself reports
	case <-w.Changed:
	case <-ctx.Done():
		return nil
	}
	for {
		err := evaluate(ctx, f, s)
		var code exitCode
		if err != nil && !errors.As(err, &code) {
			fmt.Fprintln(s.err, "CRITICAL ERROR:", err)
		}
		if ctx.Err() != nil {
			return err
		}
		fmt.Fprintln(s.err, "watching", filepath.Dir(f.manifest)+"; Ctrl-C ends")
		select {
		case <-w.Changed:
		case <-ctx.Done():
			return err
		}
		w.Set(f.watched())
		select {
		case <-w.Changed:
		case <-ctx.Done():
		}
	}
}

// watched lists the files that a run depends on: those beside and below the manifest, except the
// files that the run itself writes.
func (f *runFlags) watched() (paths []string) {
	own := map[string]bool{}
	for _, path := range []string{f.html, f.jsonOut, f.auditOut, f.junit, f.markdown, f.runFile} {
		if abs, err := filepath.Abs(path); path != "" && err == nil {
			own[abs] = true
			for _, suffix := range []string{"-wal", "-shm", "-journal", ".old", ".old-wal", ".old-shm", ".old-journal", ".new", ".new-journal", ".lock"} {
				own[abs+suffix] = true
			}
		}
	}
	folders := 0
	dir, err := filepath.Abs(filepath.Dir(f.manifest))
	if err != nil {
		return []string{f.manifest}
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // unreadable files are not watched
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
			return filepath.SkipDir
		case e.IsDir():
			if folders++; folders > maxWatched {
				return filepath.SkipAll
			}
		case !own[path]:
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}
