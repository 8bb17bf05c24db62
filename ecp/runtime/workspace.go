package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// Limits of a fixture.
const (
	maxFixtureFiles = 50000
	maxFixtureBytes = 1 << 30
)

// workspace is the folder that one attempt works in.
type workspace struct {
	dir        string
	fixtureDir string           // the folder that it was copied from; empty if it was created empty
	initial    map[string]entry // the original files, by path
}

// entry describes a file of a workspace without its contents.
type entry struct {
	mode fs.FileMode // the type of the file, and the executable bit of a regular file
	sum  string      // fingerprint: a hash of the contents, or the target of a symlink
}

// newWorkspace creates the workspace of an attempt with the contents of a fixture.
func newWorkspace(ctx context.Context, manifestDir string, f Fixture, pool *proc.Pool) (*workspace, error) {
	dir, err := os.MkdirTemp("", "ecp-workspace-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	w := &workspace{dir: dir}
	if err := w.fill(ctx, manifestDir, f, pool); err != nil {
		w.remove()
		return nil, err
	}
	return w, nil
}

func (w *workspace) fill(ctx context.Context, manifestDir string, f Fixture, pool *proc.Pool) (err error) {
	if f.Copy != "" {
		w.fixtureDir = resolveIn(manifestDir, f.Copy)
		if err := overlay(w.fixtureDir, w.dir); err != nil {
			return fmt.Errorf("copy %s: %w", f.Copy, err)
		}
	}
	if f.Git {
		const commit = "git init -q . && git add -A && git -c user.name=ecp -c user.email=ecp@localhost -c commit.gpgsign=false commit -q --no-verify --allow-empty -m fixture"
		spec := shell(commit)
		spec.Dir = w.dir
		code, output, err := runCaptured(ctx, spec, pool)
		if err != nil || code != 0 {
			return fmt.Errorf("make it a git repository: %w", errors.Join(err, errors.New(clip(output, maxShown))))
		}
	}
	w.initial, err = w.currentFiles()
	return err
}

func (w *workspace) remove() {
	w.makeReadable()
	_ = os.RemoveAll(w.dir)
}

// makeReadable restores the folder and its permissions, because the agent may have removed
// permissions, deleted the folder, or replaced it with another file.
func (w *workspace) makeReadable() {
	if info, err := os.Lstat(w.dir); err != nil || !info.IsDir() {
		_ = os.Remove(w.dir)
		_ = os.Mkdir(w.dir, 0o700)
	}
	_ = filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			if info, err := e.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = os.Chmod(path, 0o700)
			}
		}
		return nil //nolint:nilerr // if this fails, reading the file reports an error
	})
}

// resolveIn resolves a path in a manifest, relative to its folder.
func resolveIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// currentFiles returns the files of the workspace, by path. It leaves out .git folders.
func (w *workspace) currentFiles() (map[string]entry, error) {
	out, size := map[string]entry{}, int64(0)
	return out, filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(w.dir, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); len(out) >= maxFixtureFiles || size > maxFixtureBytes {
			return fmt.Errorf("the workspace has more than %d files or %d MiB", maxFixtureFiles, maxFixtureBytes>>20)
		}
		sum, err := fingerprint(path, e)
		out[filepath.ToSlash(rel)] = entry{gitModeBits(info.Mode()), sum}
		return err
	})
}

// gitModeBits reduces a mode to the parts that git stores: the type, and the executable bit.
func gitModeBits(mode fs.FileMode) fs.FileMode {
	kind := mode.Type()
	if kind == 0 && mode&0o100 != 0 {
		kind = 0o100
	}
	return kind
}

func fingerprint(path string, e fs.DirEntry) (string, error) {
	if e.Type()&fs.ModeSymlink != 0 {
		link, err := os.Readlink(path)
		return "-> " + link, err
	}
	if !e.Type().IsRegular() {
		return e.Type().String(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return string(h.Sum(nil)), err
}

// changedFiles returns the files that differ from the original state, sorted by path.
func (w *workspace) changedFiles() ([]grade.Change, error) {
	now, err := w.currentFiles()
	if err != nil {
		return nil, err
	}
	var out []grade.Change
	for path, current := range now {
		if was, ok := w.initial[path]; !ok {
			out = append(out, grade.Change{Path: path, Kind: "added"})
		} else if was != current {
			out = append(out, grade.Change{Path: path, Kind: "modified"})
		}
	}
	for path := range w.initial {
		if _, ok := now[path]; !ok {
			out = append(out, grade.Change{Path: path, Kind: "removed"})
		}
	}
	slices.SortFunc(out, func(a, b grade.Change) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// runCaptured runs a program and returns the end of its output.
func runCaptured(ctx context.Context, spec proc.Spec, pool *proc.Pool) (code int, output string, err error) {
	return runCapturedUpTo(ctx, 0, spec, pool)
}

// runCapturedUpTo is captured with another limit of the output, in bytes.
func runCapturedUpTo(ctx context.Context, limit int, spec proc.Spec, pool *proc.Pool) (code int, output string, err error) {
	out := &lineproc.Tail{Limit: limit}
	spec.Stdout, spec.Stderr = out, out
	exit, err := pool.Run(ctx, spec)
	if cause := exit.MemoryCause(); err == nil && cause != "" { // out of memory, which does not show what the agent did
		err = errors.New(cause)
	}
	return exit.Code, out.String(), err
}
