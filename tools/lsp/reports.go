package lsp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// How long a server must be silent until its reports count as complete. Many servers report in
// steps, and those that report without a document version may repeat an earlier report first.
const (
	quietVersioned = 30 * time.Millisecond
	quiet          = 100 * time.Millisecond
	quietRepeated  = 400 * time.Millisecond
	quietCold      = 300 * time.Millisecond // after its start, when it has much to report
)

// maxSilent is the number of waits without a report after which a server is no longer waited for,
// until it reports again.
const maxSilent = 3

// reports are the errors and warnings of a server, by path. server.mu guards them.
type reports struct {
	pushed, pulled map[string][]tools.Diagnostic
	count          int           // total number in pushed and pulled
	uses           uint64        // counter for the last use of documents
	nextReport     chan struct{} // closed with the next report
	lastReport     time.Time     // time of the last report
	versioned      bool          // the last report about a document had a version
	repeated       bool          // that report was the same as for the previous version
	silent         int           // consecutive waits without a report
	warm           bool          // it has checked a change, so it has loaded its project
}

func newReports() reports {
	return reports{pushed: map[string][]tools.Diagnostic{}, pulled: map[string][]tools.Diagnostic{}, nextReport: make(chan struct{})}
}

func (r *reports) drop(path string) {
	r.put(r.pushed, path, nil)
	r.put(r.pulled, path, nil)
}

// put replaces the diagnostics of a file, within limits.
func (r *reports) put(in map[string][]tools.Diagnostic, path string, list []tools.Diagnostic) {
	r.count -= len(in[path])
	delete(in, path)
	if n := min(len(list), maxKept-r.count); n > 0 && len(in) < maxFiles {
		in[path] = list[:n:n]
		r.count += n
	}
}

// notifyArrival wakes the waiters for reports.
func (r *reports) notifyArrival(now time.Time) {
	r.lastReport = now
	close(r.nextReport)
	r.nextReport = make(chan struct{})
}

// pause returns how long the server must be silent.
func (r *reports) pause(pulls bool) time.Duration {
	switch {
	case !r.warm:
		return quietCold
	case r.versioned || pulls:
		return quietVersioned
	case r.repeated:
		return quietRepeated
	}
	return quiet
}

// handleReport handles a report. Reports about files outside the workspace, or about an outdated
// version of a document, are dropped.
func (s *server) handleReport(p publishDiagnostics) {
	path := workspace.FromURI(p.URI)
	if !s.workspace.Contains(path) {
		return
	}
	path = workspace.Resolve(path)
	list := s.diagnostics(path, p.Diagnostics)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.docs[path]; d != nil {
		if p.Version != nil && *p.Version < d.version {
			return
		}
		d.checkedVersion, s.reports.silent = d.version, 0
		s.reports.versioned, s.reports.repeated = p.Version != nil, slices.Equal(d.previousReport, list)
	}
	s.reports.put(s.reports.pushed, path, list)
	s.reports.notifyArrival(s.manager.opts.Now())
}

// diagnostics returns the errors and warnings of a report; if there are too many, the worst.
func (s *server) diagnostics(path string, list []wireDiagnostic) (out []tools.Diagnostic) {
	for _, severity := range []tools.Severity{tools.Error, tools.Warning} {
		for _, d := range list {
			if max(d.Severity, 1) != int(severity)+1 { // without a severity, it is an error
				continue
			}
			if len(out) == maxPerFile {
				return out
			}
			out = append(out, tools.Diagnostic{
				At:       tools.Position{Path: path, Line: d.Range.Start.Line + 1, Character: d.Range.Start.Character + 1},
				Severity: severity, Message: shorten.Bytes(d.Message, maxMessageText),
				Source: shorten.Bytes(d.Source, 100), Code: shorten.Bytes(string(d.Code), 100),
			})
		}
	}
	return out
}

// Known implements diagnostics.Source.
func (v *View) Known(ctx context.Context, path string) (files map[string][]tools.Diagnostic, others, ok bool) {
	if !v.Serves(path) {
		return nil, false, false
	}
	s, err := v.runningFor(path)
	if err != nil {
		return nil, false, false
	}
	limit := v.settings.Wait
	if !s.waited.Swap(true) {
		limit = max(limit, v.settings.StartWait) // the server first loads its project
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.awaitReady(limited) != nil || !s.check(limited, limit, []string{workspace.Resolve(path)}) {
		return nil, false, false
	}
	return s.allDiagnostics(path), true, true
}

// Changed implements diagnostics.Source.
func (v *View) Changed(ctx context.Context, paths []string) (files map[string][]tools.Diagnostic, checked []string) {
	files = map[string][]tools.Diagnostic{}
	by := map[*server][]string{}
	for _, path := range paths {
		if s := v.ready(path); s != nil {
			by[s] = append(by[s], path)
		} else {
			checked = append(checked, path) // the server has ended, so there is nothing to wait for
		}
	}
	for s, own := range by {
		var real []string
		for _, path := range own {
			real = append(real, workspace.Resolve(path))
		}
		if s.check(ctx, v.settings.Wait, real) {
			checked = append(checked, own...)
		}
		for path, list := range s.allDiagnostics(own...) {
			files[path] = list
		}
	}
	return files, checked
}

// ready returns the server of a file if it accepts requests now.
func (v *View) ready(path string) *server {
	s, err := v.runningFor(path)
	if err != nil {
		return nil
	}
	select {
	case <-s.ready:
		return s
	default:
		return nil
	}
}

// check makes the server check files as they are on the disk, and reports whether it did so within
// the limit.
func (s *server) check(ctx context.Context, limit time.Duration, paths []string) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.refresh(ctx) != nil || s.lock(ctx) != nil {
		return false
	}
	versions := map[string]int{}
	for _, path := range paths {
		version, err := s.open(ctx, path)
		if err != nil {
			s.unlock()
			return false
		}
		if version > 0 {
			versions[path] = version
		}
	}
	s.unlock()
	if s.capabilities.pulls() {
		for path, version := range versions {
			go s.pull(ctx, path, version)
		}
	}
	var others sync.WaitGroup
	for path, version := range s.dependents(versions) {
		others.Go(func() { s.pull(ctx, path, version) })
	}
	done := s.await(ctx, versions)
	others.Wait() // ends with ctx
	return done
}

// dependents returns the most recently used documents that an edit of others may break, with their
// versions.
func (s *server) dependents(edited map[string]int) map[string]int {
	if !s.capabilities.pullsDependents() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := slices.SortedFunc(maps.Keys(s.docs), func(a, b string) int { return cmp.Compare(s.docs[b].lastUse, s.docs[a].lastUse) })
	out := map[string]int{}
	for _, path := range paths {
		if _, own := edited[path]; !own && len(out) < maxDependents {
			out[path] = s.docs[path].version
		}
	}
	return out
}

// await waits until the server has reported about the given versions of documents and is then
// silent.
func (s *server) await(ctx context.Context, versions map[string]int) bool {
	for {
		s.mu.Lock()
		done := true
		for path, version := range versions {
			d := s.docs[path]
			done = done && (d == nil || d.checkedVersion >= version)
		}
		left := s.reports.pause(s.capabilities.pulls()) - s.manager.opts.Now().Sub(s.reports.lastReport)
		if done && left <= 0 {
			s.reports.warm = true
			s.mu.Unlock()
			return true
		}
		if !done {
			left = time.Hour
			if s.reports.silent >= maxSilent {
				left = 0
			}
		}
		latest := s.reports.nextReport
		s.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-latest:
		case <-s.ended:
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			s.mu.Lock()
			defer s.mu.Unlock()
			if !done {
				s.reports.silent++
			}
			return done
		case <-timer.C:
			if !done {
				return false
			}
		}
		timer.Stop()
	}
}

// pull requests the diagnostics of a document.
func (s *server) pull(ctx context.Context, path string, version int) {
	var res pulledDiagnostics
	if err := s.conn.Call(ctx, "textDocument/diagnostic", documentParams{textDocument{s.uri(path)}}, &res); err != nil {
		return
	}
	list := s.diagnostics(path, res.Items)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[path]
	if d == nil || d.version != version {
		return
	}
	d.checkedVersion, s.reports.silent = version, 0
	if res.Kind != "unchanged" {
		s.reports.put(s.reports.pulled, path, list)
	}
	s.reports.notifyArrival(s.manager.opts.Now())
}

// allDiagnostics returns the diagnostics of all files by path: the given path of a file, or else the
// path as the client writes it.
func (s *server) allDiagnostics(given ...string) map[string][]tools.Diagnostic {
	names := map[string]string{}
	for _, path := range given {
		names[workspace.Resolve(path)] = path
	}
	out := map[string][]tools.Diagnostic{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range []map[string][]tools.Diagnostic{s.reports.pushed, s.reports.pulled} {
		for real, list := range in {
			name := cmp.Or(names[real], s.workspacePath(real))
			pushed := out[name]
			for _, d := range list {
				d.At.Path = name
				if !slices.Contains(pushed, d) {
					out[name] = append(out[name], d)
				}
			}
		}
	}
	for _, name := range names { // includes files without diagnostics
		if out[name] == nil {
			out[name] = []tools.Diagnostic{}
		}
	}
	return out
}
