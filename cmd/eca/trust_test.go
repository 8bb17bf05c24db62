package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// The command trusts a folder in its current state, lists trusted folders, and revokes trust. A run
// without a user shows which configuration has no effect, and runs nothing of it.
func TestTrustCommand(t *testing.T) {
	needs.POSIX(t)
	here := unconfiguredPlace(t)
	file := filepath.Join(here.root, ".eca", "config.json")
	ran := filepath.Join(here.root, "ran")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hook := `{"hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "shell": "touch ran"}]}}, "extraConfigs": ["more.json"]}`
	write(hook)
	if err := os.WriteFile(filepath.Join(here.root, "more.json"), []byte(`{"mcpTimeoutSeconds": 61}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		out, stderr, code := runProgram(t, here, "", args...)
		if code != want {
			t.Errorf("%q: exit %d, want %d: %s%s", args, code, want, out, stderr)
		}
		return out + stderr
	}
	expect := func(got string, pieces ...string) {
		t.Helper()
		for _, p := range pieces {
			if !strings.Contains(got, p) {
				t.Errorf("no %q in\n%s", p, got)
			}
		}
	}
	exec := func(wantRan bool) string {
		t.Helper()
		_ = os.Remove(ran)
		out := run(0, "exec", "hello")
		if _, err := os.Stat(ran); (err == nil) != wantRan {
			t.Errorf("the hook ran: %v\n%s", err == nil, out)
		}
		return out
	}
	expect(run(0, "trust", "--list"), "No folder is trusted.", "Not trusted in this directory", "config.json:1  hooks.h", "extraConfigs")
	expect(run(0, "config", "check"), "note: hooks.h does nothing until the folder is trusted")
	expect(exec(false), "eca trust", "hooks.h")
	if runtime.GOOS != "windows" {
		expect(run(1, "trust"), "touch ran", "--yes")
		exec(false)
	}
	expect(run(0, "trust", "--yes"), "Trusted in "+here.root, "touch ran", "more.json:1  mcpTimeoutSeconds")
	expect(run(0, "trust"), "Already trusted")
	if out := exec(true); strings.Contains(out, "eca trust") {
		t.Errorf("still asked to trust:\n%s", out)
	}
	expect(run(0, "config", "show", "mcpTimeoutSeconds"), "61")
	expect(run(0, "trust", "--list"), here.root, "more.json")

	write(strings.Replace(hook, "touch ran", "touch  ran", 1))
	exec(false)
	expect(run(0, "trust", "--list"), "changed since it was trusted", `-        "shell": "touch ran"`, `+        "shell": "touch  ran"`)
	write(hook)
	exec(true)
	expect(run(0, "trust", "--revoke", filepath.Dir(here.root)), "Not trusted any more: "+here.root)
	expect(run(0, "trust", "--revoke"), "was not trusted")
	exec(false)
	expect(run(2, "trust", "--revoke", "--list"), "--list and --revoke cannot be used together")
	expect(run(1, "trust", "does-not-exist"), "does-not-exist")
	expect(run(0, "trust", t.TempDir()), "needs trust")
}

// A folder that selects a model of its own provider does not stop `eca exec`: until the folder is trusted, the
// user's model answers.
func TestExecWithUntrustedModel(t *testing.T) {
	p := newProvider(t, hello)
	here := newPlace(t, append(p.env(), `ECA_CONFIG={"chat":{"title":false},"defaultModel":"openai/gpt-test"}`)...)
	text := `{"defaultModel": "evil/m", "providers": {"evil": {"api": "openai-chat", "url": "http://127.0.0.1:1", "key": "k", "models": {"m": {}}}}}`
	if err := errors.Join(os.MkdirAll(filepath.Join(here.root, ".eca"), 0o700), os.WriteFile(filepath.Join(here.root, ".eca", "config.json"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := runProgram(t, here, "", "exec", "hello")
	if code != 0 || !strings.Contains(stderr, "defaultModel") || !strings.Contains(stderr, "eca trust") {
		t.Errorf("exit %d: %s\n%s", code, out, stderr)
	}
}

// A trusted server may change its data, but not its programs; then eca names the change.
func TestTrustEndsWhenWhatIsRunChanges(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	here := unconfiguredPlace(t)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(here.root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	says := func(code int, args ...string) string {
		t.Helper()
		stdout, stderr, got := runProgram(t, here, "", args...)
		if got != code {
			t.Errorf("%q: exit code %d, want %d", args, got, code)
		}
		return stdout + stderr
	}
	const server = `{"mcpServers": {"notes": {"disabled": true, "command": "%", "args": ["--db", "notes.db", "run.rb"]}}}`
	write(".eca/config.json", strings.Replace(server, "%", "./tools/notes", 1))
	write("tools/notes", "#!/bin/sh\n")
	write("notes.db", "one")
	says(0, "trust", "--yes")
	write("notes.db", "two")
	if out := says(0, "exec", "hello"); strings.Contains(out, "trust") {
		t.Errorf("trust ended with data: %s", out)
	}
	for _, c := range []struct{ name, text, want string }{
		{"tools/notes", "#!/bin/sh\nexit\n", "tools/notes changed"},
		{".eca/config.json", strings.Replace(server, "%", "other", 1), "mcpServers.notes changed"},
	} {
		write(c.name, c.text)
		for _, args := range [][]string{{"exec", "hello"}, {"doctor", "--offline"}, {"mcp", "list"}, {"trust", "--list"}} {
			if out := says(0, args...); !strings.Contains(out, c.want) || !strings.Contains(out, "trust") {
				t.Errorf("%q does not say that %s: %s", args, c.want, out)
			}
		}
		says(0, "trust", "--yes")
	}
}
