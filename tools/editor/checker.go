package editor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Pauses between queries while an editor checks a file. Each is twice as long as the previous one,
// up to longestPause or a share of the whole wait, so that the number of queries is bounded.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 250 * time.Millisecond
	waitShare    = 4
)

// Checker queries the editor's diagnostics before and after files are edited. Editors do not report
// which version of a file the diagnostics are for, so an answer is accepted when it differs from
// the one before the edit and two in a row are equal.
type Checker struct {
	client Client
	wait   time.Duration

	mu    sync.Mutex                    // guards known
	known map[string][]tools.Diagnostic // diagnostics before edits that are not checked yet
}

// NewChecker returns a Checker. wait limits how long it waits for the editor.
func NewChecker(c Client, wait time.Duration) *Checker {
	return &Checker{client: c, wait: wait, known: map[string][]tools.Diagnostic{}}
}

// Known implements diagnostics.Source.
func (c *Checker) Known(ctx context.Context, path string) (files map[string][]tools.Diagnostic, others, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	list, err := c.ask(ctx, path)
	if err != nil {
		return nil, false, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, noted := c.known[path]; !noted {
		c.known[path] = list
	}
	return map[string][]tools.Diagnostic{path: list}, false, true
}

// Changed implements diagnostics.Source. A file whose diagnostics do not change in time counts as
// checked: the editor has no new diagnostics or does not report them.
func (c *Checker) Changed(ctx context.Context, paths []string) (files map[string][]tools.Diagnostic, checked []string) {
	limited, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	files = map[string][]tools.Diagnostic{}
	for _, path := range paths {
		if list, err := c.awaitChange(limited, path); err == nil {
			files[path] = list
		}
	}
	if ctx.Err() != nil {
		return files, nil // another edit has started
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range paths {
		delete(c.known, path)
	}
	return files, paths
}

// awaitChange queries until the diagnostics have changed and are stable, or time is up.
func (c *Checker) awaitChange(ctx context.Context, path string) ([]tools.Diagnostic, error) {
	c.mu.Lock()
	before := c.known[path]
	c.mu.Unlock()
	last, longest := before, max(longestPause, c.wait/waitShare)
	for wait := firstPause; ; wait = min(2*wait, longest) {
		if pause(ctx, wait); ctx.Err() != nil {
			return last, nil //nolint:nilerr // the last answer is used when time is up
		}
		list, err := c.ask(ctx, path)
		switch {
		case ctx.Err() != nil:
			return last, nil //nolint:nilerr // as above
		case err != nil:
			return nil, err
		case !slices.Equal(list, before) && slices.Equal(list, last):
			return list, nil
		case !slices.Equal(list, before) && slices.Equal(last, before):
			wait = firstPause // check soon whether the answer is complete
		}
		last = list
	}
}

// ask returns the editor's diagnostics of a file, sorted.
func (c *Checker) ask(ctx context.Context, path string) (out []tools.Diagnostic, err error) {
	list, err := c.client.Diagnostics(ctx, path)
	real := workspace.Resolve(path)
	for _, d := range list {
		if d.Severity <= tools.Warning && workspace.Resolve(d.At.Path) == real {
			d.At.Path = path
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, tools.Diagnostic.Compare)
	return out, err
}
