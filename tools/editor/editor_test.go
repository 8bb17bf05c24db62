package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

func TestColumn(t *testing.T) {
	for _, c := range []struct {
		text, symbol string
		hint, want   int
	}{
		{"foo bar", "bar", 0, 5},
		{"foobar bar", "bar", 0, 8},            // the whole word
		{"foobar", "bar", 0, 4},                // or a part of one
		{"a + a + a", "a", 0, 1},               // the first
		{"a + a + a", "a", 6, 5},               // or the nearest
		{"a + a + a", "a", 99, 9},              //
		{"barbar bar", "bar", 1, 8},            // a whole word far away before a part nearby
		{"\t😀 x", "x", 0, 5},                   // 😀 is two code units
		{"fmt.Println()", "fmt.Println", 0, 5}, // the last part of a qualified name
		{"func (s *T) Run()", "T.Run", 0, 13},
		{"(my-ns/do-it! 1)", "my-ns/do-it!", 0, 8},
		{"a.b + x.b", "x.b", 0, 9},
		{"é日 = é日", "é日", 0, 1},
		{"none here", "other", 4, 4}, // not saved yet, perhaps
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte("first\r\n"+c.text+"\r\nlast"), 0o600); err != nil {
			t.Fatal(err)
		}
		at, err := locate(path, 2, c.symbol, c.hint)
		if err != nil || at != (tools.Position{Path: path, Line: 2, Character: c.want}) {
			t.Errorf("%q in %q near %d: %v, %v; want %d", c.symbol, c.text, c.hint, at, err, c.want)
		}
	}
}

func TestLocateFails(t *testing.T) {
	dir := t.TempDir()
	path, long := filepath.Join(dir, "f"), filepath.Join(dir, "long")
	for name, content := range map[string]string{path: "one\ntwo", long: "x\n" + strings.Repeat("y", maxLine+1) + "\nz"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		line int
		want string
	}{
		{filepath.Join(dir, "none"), 1, "is not a file"},
		{dir, 1, "is not a file"},
		{path, 3, "has 2 lines"},
		{path, 2, `"z" is not on line 2 of ` + path + ", which reads: two"},
		{long, 3, "line 2: bufio.Scanner: token too long"},
	} {
		if _, err := locate(c.path, c.line, "z", 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:%d: %v, want %s", c.path, c.line, err, c.want)
		}
	}
}

func TestWithin(t *testing.T) {
	started := func(after time.Duration) func(context.Context) (string, error) {
		start := time.Now()
		return func(context.Context) (string, error) {
			if time.Since(start) < after {
				return "", fmt.Errorf("gopls: %w", ErrStarting)
			}
			return "yes", nil
		}
	}
	never := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	stop := errors.New("stopped")
	for name, c := range map[string]struct {
		timeout, stopAfter time.Duration
		ask                func() func(context.Context) (string, error)
		want               string
		took               time.Duration
	}{
		"at once":         {30 * time.Second, time.Hour, func() func(context.Context) (string, error) { return started(0) }, "yes", 0},
		"starting":        {30 * time.Second, time.Hour, func() func(context.Context) (string, error) { return started(5 * time.Second) }, "yes", 6 * time.Second},
		"starting always": {30 * time.Second, time.Hour, func() func(context.Context) (string, error) { return started(time.Hour) }, "still starting after 30s", 30 * time.Second},
		"no answer":       {30 * time.Second, time.Hour, func() func(context.Context) (string, error) { return never }, "did not answer within 30s", 30 * time.Second},
		"no limit":        {0, time.Hour, func() func(context.Context) (string, error) { return started(50 * time.Second) }, "yes", 50 * time.Second},
		"stopped":         {30 * time.Second, 3 * time.Second, func() func(context.Context) (string, error) { return never }, context.Canceled.Error(), 3 * time.Second},
		"stopped while starting": {
			0, 3 * time.Second, func() func(context.Context) (string, error) { return started(time.Hour) }, context.Canceled.Error(), 3 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				timer := time.AfterFunc(c.stopAfter, func() { cancel(stop) })
				defer timer.Stop()
				start := time.Now()
				got, err := withTimeout(ctx, c.timeout, c.ask())
				if err != nil {
					got = err.Error()
				}
				if took := time.Since(start); !strings.Contains(got, c.want) || took != c.took {
					t.Errorf("%s after %s, want %s after %s", got, took, c.want, c.took)
				}
			})
		})
	}
}

// Long lists are cut, the worst first.
func TestListsAreCut(t *testing.T) {
	var many []tools.Diagnostic
	for i := range maxDiagnostics + 10 {
		many = append(many, tools.Diagnostic{At: tools.Position{Path: "/f", Line: i + 1, Character: 1}, Severity: tools.Hint, Message: strings.Repeat("é", tools.MaxMessage)})
	}
	many[len(many)-1].Severity = tools.Error
	list := Tools(Options{Navigation: true, Client: Client{
		Diagnostics: func(context.Context, string) ([]tools.Diagnostic, error) { return many, nil },
		Definition: func(context.Context, tools.Position) ([]tools.Position, error) {
			return make([]tools.Position, maxLocations+1), nil
		},
	}})
	if len(list) != 2 {
		t.Fatalf("%d tools", len(list))
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		args        map[string]any
		first, last string
		lines       int
	}{
		{map[string]any{}, "/f:210:1: error: é", "... 10 more are left out; ask for one file", maxDiagnostics + 1},
		{map[string]any{"path": path, "line": 1, "symbol": "x"}, ":0:0", "... 1 more are left out", maxLocations + 1},
	} {
		args, err := json.Marshal(c.args)
		if err != nil {
			t.Fatal(err)
		}
		res, err := list[i].Run(t.Context(), tools.Call{Arguments: args}, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(res.Outputs[0], "\n")
		if len(lines) != c.lines || !strings.HasPrefix(lines[0], c.first) || lines[len(lines)-1] != c.last || len(lines[0]) > tools.MaxMessage+50 {
			t.Errorf("%d lines, first %s, last %s", len(lines), lines[0], lines[len(lines)-1])
		}
	}
}
