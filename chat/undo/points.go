package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// point is an undo point: the states of the workspace before and after a command. Its fields are stored.
type point struct {
	Chat         string
	ID           string // id of the record when the command ran
	From, To     int    // its changes are the steps From+1 to To
	Began, Ended time.Time
	Others       []fileName // paths that tools of other chats wrote while it ran
}

// ended reports whether the state after the command was recorded.
func (p point) ended() bool { return !p.Ended.IsZero() }

// maxDuration is slightly more than the time limit of a custom tool, the longest of all commands
// (tools/shell). If the end of a command has not been recorded by then, its process died.
const maxDuration = 65 * time.Minute

// until returns the time by which the command had ended.
func (p point) until() time.Time {
	if p.ended() {
		return p.Ended
	}
	return p.Began.Add(maxDuration)
}

func (r *record) pointPath(name string) string { return filepath.Join(r.dir, "points", name) }

// points reads all points.
func (r *record) points() (map[string]point, error) {
	entries, err := os.ReadDir(filepath.Join(r.dir, "points"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	out := map[string]point{}
	for _, e := range entries {
		var p point
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if readJSON(r.pointPath(e.Name()), &p) == nil {
			out[e.Name()] = p
		}
	}
	return out, err
}

// storePoint writes a point.
func (r *record) storePoint(name string, p point) error {
	if err := os.MkdirAll(filepath.Join(r.dir, "points"), privateDirMode); err != nil {
		return err
	}
	return writeJSON(r.pointPath(name), p)
}

// prune removes the points that began before a time. While the contents take more than limit bytes, it
// removes the older half of the remaining points. It removes the steps and contents that no remaining point needs. The caller
// holds the lock.
func (r *record) prune(before time.Time, limit int64) error {
	if err := r.load(); err != nil {
		return err
	}
	if r.id == "" {
		return nil
	}
	points, err := r.points()
	if err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(points), func(a, b string) int { return points[a].Began.Compare(points[b].Began) })
	for len(names) > 0 && points[names[0]].Began.Before(before) {
		if err := r.drop(points, names[0]); err != nil {
			return err
		}
		names = names[1:]
	}
	if err := r.sweep(points); err != nil {
		return err
	}
	for len(names) > 0 && r.objects.used > limit {
		half := (len(names) + 1) / 2
		for _, name := range names[:half] {
			if err := r.drop(points, name); err != nil {
				return err
			}
		}
		names = names[half:]
		if err := r.sweep(points); err != nil {
			return err
		}
	}
	return nil
}

func (r *record) drop(points map[string]point, name string) error {
	delete(points, name)
	if err := os.Remove(r.pointPath(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes the steps and contents that no point needs.
func (r *record) sweep(points map[string]point) error {
	if err := r.storeBase(); err != nil {
		return err
	}
	needed := map[string]bool{}
	keep := func(e *entry) {
		if e != nil && e.Hash != "" {
			needed[e.Hash] = true
		}
	}
	for _, e := range r.files {
		keep(e)
	}
	entries, err := os.ReadDir(filepath.Join(r.dir, "changes"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, number, _ := strings.Cut(e.Name(), "-")
		n := 0
		_, _ = fmt.Sscan(number, &n)
		wanted := false
		for _, p := range points {
			wanted = wanted || p.ID == id && n > p.From && (!p.ended() || n <= p.To)
		}
		file := filepath.Join(r.dir, "changes", e.Name())
		var s step
		if !wanted || readJSON(file, &s) != nil {
			if err := os.Remove(file); err != nil {
				return err
			}
			continue
		}
		for _, c := range s.Changes {
			keep(c.Old)
			keep(c.New)
		}
	}
	return r.objects.sweep(func(name string) bool { return needed[name] })
}

// Forget implements chat.Files: it removes the undo points of a chat.
func (f *Files) Forget(ctx context.Context, chatID string) error {
	found, err := filepath.Glob(filepath.Join(f.opts.Dir(), "*", "points", shortHash(chatID)+"-*"))
	if err != nil {
		return err
	}
	var errs []error
	dirs := map[string]bool{}
	for _, file := range found {
		errs = append(errs, os.Remove(file))
		dirs[filepath.Dir(filepath.Dir(file))] = true
	}
	for dir := range dirs {
		errs = append(errs, f.clean(ctx, dir, time.Time{}))
	}
	return errors.Join(errs...)
}

// maxTotal is the maximum size of all records, in bytes.
const maxTotal = 8 << 30

// Clean removes points that are older than age, and records that were not used for that long. Then it
// removes the least recently used records until the others take at most maxTotal.
func (f *Files) Clean(ctx context.Context, age time.Duration) error {
	entries, err := os.ReadDir(f.opts.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	before := f.opts.Now().Add(-age)
	var errs []error
	type used struct {
		dir  string
		at   time.Time
		size int64
	}
	var list []used
	for _, e := range entries {
		dir := filepath.Join(f.opts.Dir(), e.Name())
		info, err := os.Stat(filepath.Join(dir, "points"))
		if err != nil || info.ModTime().Before(before) { // each command updates the time
			errs = append(errs, f.remove(ctx, dir))
			continue
		}
		errs = append(errs, f.clean(ctx, dir, before))
		sizes, err := (&objects{dir: filepath.Join(dir, "objects")}).sizes()
		errs = append(errs, err)
		u := used{dir: dir, at: info.ModTime()}
		for _, size := range sizes {
			u.size += size
		}
		list = append(list, u)
	}
	slices.SortStableFunc(list, func(a, b used) int { return b.at.Compare(a.at) })
	var total int64
	for _, u := range list {
		if total += u.size; total > maxTotal {
			errs = append(errs, f.remove(ctx, u.dir))
		}
	}
	return errors.Join(errs...)
}

// clean prunes the record in a folder. It removes a record that cannot be read, or that another root
// would have in this folder.
func (f *Files) clean(ctx context.Context, dir string, before time.Time) error {
	var b base
	if err := readJSON(filepath.Join(dir, "base"), &b); err != nil {
		return f.remove(ctx, dir)
	}
	r := f.record(string(b.Root))
	if r.dir != dir {
		return f.remove(ctx, dir)
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return r.prune(before, quota)
}

// remove removes the record in a folder.
func (f *Files) remove(ctx context.Context, dir string) error {
	f.mu.Lock()
	r := f.records[dir]
	if r == nil {
		r = &record{dir: dir}
	}
	f.mu.Unlock()
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r.invalidate()
	return os.RemoveAll(dir)
}
