package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// On a terminal, eca trust shows what would run, or what has changed, and then asks.
func TestTrustAsksOnATerminal(t *testing.T) {
	needs.Long(t)
	here := unconfiguredPlace(t)
	hook := func(command string) {
		t.Helper()
		file := filepath.Join(here.root, ".eca", "config.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(`{"hooks": {"mine": {"type": "sessionStart", "actions": [{"type": "shell", "shell": "`+command+`"}]}}}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hook("touch first")
	for _, c := range []struct {
		answer, shown, end string
		code               int
	}{
		{"n", "touch first", "nothing was trusted", 1},
		{"", "touch first", "nothing was trusted", 1},
		{"y", "touch first", "Trusted in", 0},
	} {
		o := runOnTerminal(t, here, "trust")
		if said := o.await("[y/N] "); !strings.Contains(said, c.shown) {
			t.Errorf("before the question: %s", said)
		}
		o.press(c.answer + "\n")
		if rest, code := o.end(); code != c.code || !strings.Contains(rest, c.end) {
			t.Errorf("after %q: exit code %d, %s", c.answer, code, rest)
		}
	}
	hook("touch second")
	o := runOnTerminal(t, here, "trust")
	said := o.await("[y/N] ")
	for _, want := range []string{"changed since it was trusted", "touch first", "touch second"} {
		if !strings.Contains(said, want) {
			t.Errorf("the change is shown without %q: %s", want, said)
		}
	}
	o.press("n\n")
	if _, code := o.end(); code != 1 {
		t.Errorf("exit code %d", code)
	}
}
