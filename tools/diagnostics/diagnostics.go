// Package diagnostics adds the errors and warnings that an edit caused to the edit's result.
//
// Reporter.Watch wraps the tools that change files. It queries a Source before and after a call,
// and appends the new diagnostics to the result, the worst first, within limits. Overlapping edits
// of one chat are reported together, in the result of the last one. If the source has not checked a
// file in time, the next edit of the chat reports its new diagnostics.
//
// No edit fails because of diagnostics, and no edit waits for a file that the source does not
// serve. The package knows neither editors nor language servers: they are sources.
package diagnostics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of stored and reported diagnostics.
const (
	maxFile   = 1 << 20 // bytes of a file that is checked
	maxShown  = 20      // diagnostics in one result
	maxText   = 8 << 10 // bytes of them
	maxChats  = 64      // chats with unreported edits
	maxEdited = 100     // unreported edited files of a chat
)

// Source provides diagnostics. Its methods have their own time limits.
type Source interface {
	// Known returns the diagnostics before a file is changed, by path: those of that file and, if
	// others is set, of all other files. ok is false if the source does not serve the file.
	Known(ctx context.Context, path string) (files map[string][]tools.Diagnostic, others, ok bool)
	// Changed returns the diagnostics after files have changed, by path, and the changed files that
	// have been checked since.
	Changed(ctx context.Context, paths []string) (files map[string][]tools.Diagnostic, checked []string)
}

// Reporter reports new diagnostics. Create it with New.
type Reporter struct {
	mu    sync.Mutex // guards the fields below, and the fields of each batch
	chats map[string]*batch
	order []string // chats, the one with the latest edit last
}

// batch is the set of a chat's unreported edits.
type batch struct {
	running int           // number of running edits
	next    chan struct{} // closed when another edit starts
	known   map[string][]tools.Diagnostic
	others  bool              // known includes all other files
	before  map[string]string // texts of edited files; empty for those that did not exist
	edited  map[string]bool   // files that have been changed
}

// New returns a Reporter.
func New() *Reporter { return &Reporter{chats: map[string]*batch{}} }

// Watch wraps a tool that changes the file in its argument path, or moves source to destination.
func (r *Reporter) Watch(t tools.Tool, source Source) tools.Tool {
	return &watchedTool{t, r, source}
}

type watchedTool struct {
	tools.Tool
	reporter *Reporter
	source   Source
}

func (w *watchedTool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	paths := changedBy(call)
	b := w.reporter.begin(call.ChatID)
	served := w.observe(ctx, b, paths)
	res, err := w.Tool.Run(ctx, call, out)
	text := w.finish(ctx, b, paths, served && err == nil && !res.Failed)
	switch {
	case text == "":
	case err != nil:
		res, err = tools.Result{Failed: true, Outputs: []string{err.Error() + "\n\n" + text}}, nil
	case len(res.Outputs) == 0:
		res.Outputs = []string{text}
	default:
		res.Outputs[len(res.Outputs)-1] += "\n\n" + text
	}
	return res, err
}

// changedBy returns the files that a call changes: a single one, or the source and the destination
// of a move.
func changedBy(call tools.Call) []string {
	var args struct{ Path, Source, Destination string }
	if json.Unmarshal(call.Arguments, &args) != nil {
		return nil
	}
	var out []string
	for _, path := range []string{args.Path, args.Source, args.Destination} {
		if path != "" {
			out = append(out, workspace.Abs(call.Roots, path))
		}
	}
	return out
}

// begin counts a running edit. It takes over the reports of earlier edits of the chat that are
// still waiting.
func (r *Reporter) begin(chatID string) *batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.chats[chatID]
	if b == nil {
		b = &batch{known: map[string][]tools.Diagnostic{}, before: map[string]string{}, edited: map[string]bool{}, others: true}
		r.chats[chatID] = b
	}
	r.order = append(slices.DeleteFunc(r.order, func(id string) bool { return id == chatID }), chatID)
	if len(r.order) > maxChats {
		delete(r.chats, r.order[0])
		r.order = r.order[1:]
	}
	b.running++
	if b.next != nil {
		close(b.next)
	}
	b.next = make(chan struct{})
	return b
}

// observe records the diagnostics before an edit. It reports whether the source serves the files.
func (w *watchedTool) observe(ctx context.Context, b *batch, paths []string) bool {
	if len(paths) == 0 {
		return false
	}
	first, last := paths[0], paths[len(paths)-1]
	before, ok := readText(first)
	if !ok {
		return false
	}
	files, others, ok := w.source.Known(ctx, first)
	if !ok {
		return false
	}
	w.reporter.mu.Lock()
	defer w.reporter.mu.Unlock()
	if len(b.before) >= maxEdited {
		return false
	}
	if _, pending := b.before[first]; !pending {
		b.before[first], b.known[first] = before, files[first]
	}
	if last != first {
		b.before[last], b.known[last] = b.before[first], withPath(b.known[first], last)
	}
	b.others = b.others && others
	for path, list := range files {
		if _, noted := b.known[path]; !noted && others {
			b.known[path] = list
		}
	}
	return true
}

// withPath returns diagnostics with another path.
func withPath(list []tools.Diagnostic, path string) []tools.Diagnostic {
	out := slices.Clone(list)
	for i := range out {
		out[i].At.Path = path
	}
	return out
}

// finish ends an edit. If no other one is running, it returns the report, which may be empty.
func (w *watchedTool) finish(ctx context.Context, b *batch, paths []string, changed bool) string {
	r := w.reporter
	r.mu.Lock()
	if changed {
		for _, path := range paths {
			b.edited[path] = true
		}
	}
	b.running--
	if b.running == 0 {
		b.forgetUnedited() // a failed edit changes no file
	}
	edited, next := slices.Sorted(maps.Keys(b.edited)), b.next
	wait := b.running == 0 && len(edited) > 0
	r.mu.Unlock()
	if !wait {
		return ""
	}
	superseded := errors.New("another edit began")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-next:
			cancel(superseded)
		case <-stop:
		}
	}()
	now, checked := w.source.Changed(ctx, edited)
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.running > 0 || ctx.Err() != nil {
		return "" // the running edit or the next one reports it
	}
	return formatReport(b.take(now, checked))
}

// take returns the new diagnostics, and drops the edits of the files that were checked.
func (b *batch) take(now map[string][]tools.Diagnostic, checked []string) (out []tools.Diagnostic) {
	for path, list := range now {
		before, edited := b.before[path]
		switch {
		case edited && !slices.Contains(checked, path), !edited && !b.others:
			continue
		case !edited:
			out = append(out, newDiagnostics(b.known[path], list, nil)...)
		default:
			after, _ := readText(path)
			out = append(out, newDiagnostics(b.known[path], list, hunks(before, after))...)
		}
	}
	for _, path := range checked {
		delete(b.edited, path)
	}
	b.forgetUnedited()
	maps.DeleteFunc(b.known, func(path string, _ []tools.Diagnostic) bool { return !b.edited[path] })
	b.others = true
	return slices.DeleteFunc(out, func(d tools.Diagnostic) bool { return d.Severity > tools.Warning })
}

// forgetUnedited drops the texts of files that have not been changed or are already reported.
func (b *batch) forgetUnedited() {
	maps.DeleteFunc(b.before, func(path, _ string) bool { return !b.edited[path] })
}

// readText returns the text of a file; empty if it does not exist. ok is false if it is too long or
// not text.
func readText(path string) (text string, ok bool) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", true
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", false
	}
	data, err := os.ReadFile(path)
	return string(data), err == nil && !workspace.IsBinary(data)
}

// formatReport formats the report for the model; empty if nothing is new.
func formatReport(list []tools.Diagnostic) string {
	if len(list) == 0 {
		return ""
	}
	slices.SortFunc(list, tools.Diagnostic.Compare)
	list = slices.Compact(list)
	var b strings.Builder
	b.WriteString("New errors and warnings after this edit:")
	for i, d := range list {
		line := d.String()
		if i == maxShown || b.Len()+len(line) > maxText {
			fmt.Fprintf(&b, "\n... and %d more", len(list)-i)
			break
		}
		b.WriteString("\n" + filepath.ToSlash(line))
	}
	return b.String()
}
