package editor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// slowEditor names an error from a moment on, and counts how often it is asked.
type slowEditor struct {
	from  time.Time
	asked int
}

func (e *slowEditor) diagnostics(_ context.Context, path string) ([]tools.Diagnostic, error) {
	e.asked++
	if time.Now().Before(e.from) {
		return nil, nil
	}
	return []tools.Diagnostic{{At: tools.Position{Path: path, Line: 1}, Message: "no"}}, nil
}

// Changed asks an editor only a few times, also if it may wait long. It finds an error that the
// editor reports before the wait is over.
func TestCheckerAsksRarely(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait, after time.Duration
		most        int
		found       bool
	}{
		{time.Second, 0, 3, true},
		{time.Second, 300 * time.Millisecond, 6, true},
		{time.Second, 700 * time.Millisecond, 7, true},
		{time.Second, time.Hour, 6, false},
		{time.Minute, time.Hour, 14, false},
		{time.Minute, 40 * time.Second, 14, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &slowEditor{from: time.Now().Add(time.Hour)}
			checker := NewChecker(Client{Diagnostics: e.diagnostics}, c.wait)
			path := t.TempDir() + "/a.go"
			if _, _, ok := checker.Known(t.Context(), path); !ok {
				t.Fatal("not served")
			}
			e.from = time.Now().Add(c.after)
			files, _ := checker.Changed(t.Context(), []string{path})
			if found := len(files[path]) > 0; found != c.found || e.asked > c.most {
				t.Errorf("wait %s, error after %s: found %v, asked %d times", c.wait, c.after, found, e.asked)
			}
		})
	}
}
