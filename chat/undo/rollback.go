package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// span describes the changes to a folder by one or more overlapping commands of a chat.
type span struct {
	record      *record
	point                 // covers all the commands
	first, last event.Seq // sequence numbers of the events around them in the chat's log
	interrupted bool      // there was no scan after one of them: the process died, or the scan failed
	changes     map[string]change
	unknown     error // why the changes are unknown; nil if they are known
}

// Rollback implements chat.Files.
func (f *Files) Rollback(ctx context.Context, events []event.Event) (problems []string) {
	spans := f.spans(ctx, events)
	type step struct {
		at   event.Seq
		undo func() []string
	}
	var steps []step
	failed := map[string]bool{} // files whose older changes cannot be undone either
	for _, s := range spans {
		steps = append(steps, step{s.last, func() []string { return s.undo(ctx, failed) }})
	}
	for _, e := range events {
		c, ok := e.Body.(event.FileChanged)
		if !ok || slices.ContainsFunc(spans, func(s *span) bool { return s.includesChange(c, e.Seq) }) {
			continue
		}
		steps = append(steps, step{e.Seq, func() []string {
			if failed[c.Path] {
				return nil
			}
			if err := f.restore(ctx, c); err != nil {
				failed[c.Path] = true
				return []string{err.Error()}
			}
			return nil
		}})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for _, s := range slices.Backward(steps) {
		problems = append(problems, s.undo()...)
	}
	return problems
}

// spans returns the spans of all commands in events.
func (f *Files) spans(ctx context.Context, events []event.Event) []*span {
	ends := map[string]event.Seq{} // by name of the undo point
	calls := map[string]event.Seq{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.ToolFinished:
			calls[b.CallID] = e.Seq
		case event.ToolRejected:
			calls[b.CallID] = e.Seq
		case event.UndoPoint:
			for _, folder := range b.Roots {
				if b.Ended {
					ends[folder.Point] = e.Seq
				}
			}
		default:
		}
	}
	var all []*span
	for _, e := range events {
		p, ok := e.Body.(event.UndoPoint)
		if !ok || p.Ended {
			continue
		}
		for _, folder := range p.Roots {
			s := f.spanOf(ctx, folder)
			s.first, s.last = e.Seq, max(e.Seq, cmp.Or(ends[folder.Point], calls[p.CallID]))
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *span) int {
		return cmp.Or(strings.Compare(a.record.root, b.record.root), cmp.Compare(a.first, b.first))
	})
	var out []*span
	for _, s := range all {
		last := len(out) - 1
		if last < 0 || out[last].record != s.record || out[last].ID != s.ID || s.first > out[last].last || s.unknown != nil || out[last].unknown != nil {
			out = append(out, s)
			continue
		}
		o := out[last]
		o.From, o.To, o.interrupted = min(o.From, s.From), max(o.To, s.To), o.interrupted || s.interrupted
		o.Others = append(o.Others, s.Others...)
		o.last = max(o.last, s.last)
		if s.until().After(o.until()) {
			o.Ended = s.until()
		}
	}
	for _, s := range out {
		if s.unknown == nil {
			s.changes, s.unknown = s.record.changesBetween(s.ID, s.From, s.To)
		}
	}
	return out
}

// spanOf returns the span of one command in a folder.
func (f *Files) spanOf(ctx context.Context, folder event.UndoFolder) *span {
	s := &span{record: f.record(folder.Path)}
	s.unknown = readJSON(s.record.pointPath(filepath.Base(folder.Point)), &s.point)
	if s.unknown != nil || s.ended() {
		return s
	}
	s.interrupted = true
	unlock, err := s.record.lock(ctx)
	if err == nil {
		defer unlock()
		_, err = s.record.snapshot(ctx)
	}
	if err == nil && s.record.id != s.ID {
		err = errors.New("the record was recreated since then")
	}
	s.To, s.unknown = s.record.number, err
	return s
}

// includesChange reports whether undoing the span also undoes a tool's change.
func (s *span) includesChange(c event.FileChanged, at event.Seq) bool {
	rel, err := filepath.Rel(s.record.root, c.Path)
	if err != nil || !filepath.IsLocal(rel) || at < s.first || at > s.last || s.unknown != nil {
		return false
	}
	_, ok := s.changes[filepath.ToSlash(rel)]
	return ok
}

// undo undoes the changes of the span, except those of files in failed, to which it adds the files
// that it reports.
func (s *span) undo(ctx context.Context, failed map[string]bool) (problems []string) {
	if s.unknown != nil {
		return []string{fmt.Sprintf("eca no longer knows what a command changed in %s: %v", s.record.root, s.unknown)}
	}
	if len(s.changes) == 0 {
		return nil
	}
	unlock, err := s.record.lock(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	defer unlock()
	changedByOthers, err := s.changedByOthers()
	if err != nil {
		return []string{fmt.Sprintf("eca no longer knows what other chats changed in %s: %v", s.record.root, err)}
	}
	var todo []change
	for _, name := range slices.Sorted(maps.Keys(s.changes)) {
		c := s.changes[name]
		now, err := s.record.current(name)
		full := filepath.Join(s.record.root, filepath.FromSlash(name))
		known := len(problems)
		switch {
		case failed[full]:
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s cannot be read: %v", full, err))
		case c.Old.same(now):
		case changedByOthers[name]:
			problems = append(problems, full+" may have been changed by another chat while the command ran")
		case s.interrupted && c.New != nil:
			problems = append(problems, full+" was changed, but eca could not record the files at the end of the command, so eca does not know who changed it")
		case !c.New.same(now):
			problems = append(problems, full+" was changed since")
		case c.Old != nil && c.Old.Kind == kindSpecial, c.Old != nil && c.Old.Kind == kindFile && c.Old.Hash == "":
			problems = append(problems, "the old content of "+full+" was not saved")
		case c.Old != nil && c.Old.Kind == kindFile && !s.record.objects.has(c.Old.Hash, c.Old.Size):
			problems = append(problems, "the old content of "+full+" no longer exists")
		default:
			todo = append(todo, c)
		}
		failed[full] = failed[full] || len(problems) > known
	}
	return append(problems, s.record.restoreEntries(todo)...)
}

// changedByOthers returns the paths that other chats may have changed while the span's commands ran. If two
// commands run at the same time, either of them may have made a change.
func (s *span) changedByOthers() (map[string]bool, error) {
	out := map[string]bool{}
	for _, name := range s.Others {
		out[string(name)] = true
	}
	points, err := s.record.points()
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		if p.Chat == s.Chat || p.ID != s.ID || p.Began.After(s.until()) || p.until().Before(s.Began) {
			continue
		}
		from, to := max(p.From, s.From), s.To
		if p.ended() {
			to = min(p.To, s.To)
		}
		if from >= to {
			continue
		}
		otherChanges, err := s.record.changesBetween(s.ID, from, to)
		if err != nil {
			return nil, err
		}
		for name := range otherChanges {
			out[name] = true
		}
	}
	return out, nil
}

// open opens a path in the folder.
func (r *record) open(name string) (safeio.Entry, error) {
	return safeio.OpenEntry(r.root, filepath.Join(r.root, filepath.FromSlash(name)), false)
}

// current returns the current entry at a path, or nil if nothing exists there.
func (r *record) current(name string) (*entry, error) {
	p, err := r.open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, safeio.ErrNotFolder) {
		return nil, nil //nolint:nilnil // nil means that nothing exists there
	}
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return entryAt(p)
}

// entryAt returns the current entry of an open path, or nil if nothing exists there.
func entryAt(p safeio.Entry) (*entry, error) {
	info, target, err := p.Stat()
	if err != nil || info == nil {
		return nil, err
	}
	e := describe(info)
	e.Link = fileName(target)
	if e.Kind == kindFile && e.Size <= maxFile {
		data, err := p.Read(maxFile)
		if err != nil {
			return nil, err
		}
		e.Hash = artifact.Hash(data)
	}
	return &e, nil
}

// restoreEntries restores the old entries of changed paths. First it removes entries that must go, deepest
// first, and then it creates folders and their contents.
func (r *record) restoreEntries(todo []change) (problems []string) {
	failed := map[fileName]bool{}
	each := func(actionFor func(change) func(safeio.Entry) error) {
		for _, c := range todo {
			do := actionFor(c)
			if do == nil || failed[c.Path] {
				continue
			}
			p, err := r.open(string(c.Path))
			if err == nil {
				err = do(p)
				p.Close()
			}
			if err != nil {
				failed[c.Path] = true
				why := fmt.Sprintf("cannot be restored: %v", err)
				if errors.Is(err, syscall.ENOTEMPTY) {
					why = "was not removed, because it contains files that the command did not create"
				}
				problems = append(problems, filepath.Join(r.root, filepath.FromSlash(string(c.Path)))+" "+why)
			}
		}
	}
	const usable = 0o700 // permissions of folders until their contents are restored
	slices.SortStableFunc(todo, func(a, b change) int {
		return cmp.Or(strings.Count(string(a.Path), "/")-strings.Count(string(b.Path), "/"), cmp.Compare(a.Path, b.Path))
	})
	each(func(c change) func(safeio.Entry) error {
		if c.Old == nil || c.New == nil || c.Old.Kind != kindFolder || c.New.Kind != kindFolder {
			return nil
		}
		return func(p safeio.Entry) error { return p.Folder(c.Old.Mode | usable) }
	})
	slices.Reverse(todo)
	each(func(c change) func(safeio.Entry) error {
		if c.New == nil || c.Old != nil && c.Old.Kind == c.New.Kind && c.Old.Kind != kindLink {
			return nil
		}
		return safeio.Entry.Unlink
	})
	slices.Reverse(todo)
	each(func(c change) func(safeio.Entry) error {
		if c.Old == nil {
			return nil
		}
		return func(p safeio.Entry) error { return r.create(c, p, usable) }
	})
	slices.Reverse(todo)
	each(func(c change) func(safeio.Entry) error {
		if c.Old == nil || c.Old.Kind != kindFolder {
			return nil
		}
		return func(p safeio.Entry) error { return p.Folder(c.Old.Mode) }
	})
	return problems
}

// create restores the old entry of a path. A folder gets extra permissions in addition to its own.
func (r *record) create(c change, p safeio.Entry, extra fs.FileMode) error {
	switch c.Old.Kind {
	case kindFolder:
		return p.Folder(c.Old.Mode | extra)
	case kindLink:
		return p.Link(string(c.Old.Link))
	}
	content, err := r.objects.get(c.Old.Hash)
	if err != nil {
		return err
	}
	return p.Replace(content, c.Old.Mode, func() error {
		if now, err := entryAt(p); err != nil || now != nil && !c.New.same(now) {
			return errors.Join(errors.New("it has just been changed"), err)
		}
		return nil
	})
}
