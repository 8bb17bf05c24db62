package config

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The output of a command is valid until the text that contains it changes; while it runs again,
// the previous output is used.
func TestCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		takes, fails := time.Duration(0), false
		c := NewCommands(func(ctx context.Context, command string) (string, error) {
			runs.Add(1)
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if fails {
				return "", errors.New("locked")
			}
			return command + strings.Repeat("!", int(runs.Load())), nil
		}, CommandTime)
		defer c.Close()
		home := t.TempDir()
		var l *Loaded
		load := func(text string) string {
			write(t, filepath.Join(home, "config.json"), text)
			l = Load(Inputs{Getenv: env(nil), ConfigHome: home, Commands: c, CommandWait: time.Second, Previous: l})
			return l.WelcomeMessage
		}
		is := func(what, got, want string, ran int32, pending bool) {
			t.Helper()
			if got != want || runs.Load() != ran || l.Pending != pending {
				t.Errorf("%s: %q after %d runs, pending %v; want %q after %d", what, got, runs.Load(), l.Pending, want, ran)
			}
		}
		one := `{"welcomeMessage": "${cmd:a}"}`
		is("first", load(one), "a!", 1, false)
		is("again", load(one), "a!", 1, false)
		is("broken meanwhile", load(`{"welcomeMessage": "${cmd:a}`), "a!", 1, false)
		is("changed", load(one+" "), "a!!", 2, false)
		takes = 2 * time.Second
		is("slow", load(one+"  "), "a!!", 3, true)
		<-c.Finished()
		is("at last", load(one+"  "), "a!!!", 3, false)
		takes = time.Minute
		is("endless", load(one), "a!!!", 4, true)
		<-c.Finished()
		is("endless again", load(one), "", 4, false)
		for _, part := range []string{"did not end within 30s", "run it in a terminal", "${env:NAME}"} {
			if p := l.Problems; len(p) != 1 || !strings.Contains(p[0].Cause, part) {
				t.Errorf("problems: %v, want %q", p, part)
			}
		}
		time.Sleep(time.Hour)
		is("endless an hour later", load(one), "", 4, false)
		takes, fails = 0, true
		one += "\n"
		is("failing", load(one), "", 5, false)
		if p := l.Problems; len(p) != 1 || p[0].String() != filepath.Join(home, "config.json")+":1:2: welcomeMessage: ${cmd:...}: locked" {
			t.Errorf("problems: %v", p)
		}
		fails = false
		is("failed just now", load(one), "", 5, false)
		time.Sleep(retryCommands)
		is("unlocked", load(one), "a!!!!!!", 6, false)
		is("gone", load(`{"welcomeMessage": "x"}`), "x", 6, false)
		// Commands in values that are not in effect do not run.
		l = Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": `{"welcomeMessage": "${cmd:never}"}`}), ConfigHome: home, Commands: c})
		is("replaced", l.WelcomeMessage, "x", 6, false)
	})
}

// Commands in texts of other files also run once.
func TestExpandText(t *testing.T) {
	runs := 0
	c := NewCommands(func(_ context.Context, command string) (string, error) { runs++; return "secret-" + command, nil }, CommandTime)
	defer c.Close()
	home := t.TempDir()
	write(t, filepath.Join(home, "part.md"), "part")
	l := Load(Inputs{Getenv: env(map[string]string{"A": "x"}), ConfigHome: home, Commands: c})
	for range 3 {
		got, files, err := l.Expand(t.Context(), "${env:A} ${file:part.md} ${plugin:root} ${cmd:a}", Place{Dir: home, Plugin: "/p"})
		if got != "x part /p secret-a" || err != nil || len(files) != 1 || files[0] != filepath.Join(home, "part.md") {
			t.Errorf("%q %v", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	if got := strings.Join(l.Secrets(), " "); got != "secret-a" {
		t.Errorf("secrets: %s", got)
	}
	if got, _, err := l.Expand(t.Context(), "a ${file:none}b", Place{Dir: home}); got != "a b" || err == nil {
		t.Errorf("%q %v", got, err)
	}
}
