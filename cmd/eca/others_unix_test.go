//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Someone who can write the user's configuration can run commands as the user, and someone who can
// read a secret in it has that secret. eca reports both, and uses the file.
func TestConfigurationOfOthers(t *testing.T) {
	needs.Long(t)
	t.Setenv("GOTMPDIR", "/tmp") // others can reach it; they may not reach the folder of a run of tests
	here := newPlace(t)
	dir := filepath.Join(filepath.Dir(here.root), "config", "eca")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(filepath.Dir(filepath.Dir(here.root)), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.json": `{"providers": {"mine": {"api": "openai-chat", "url": "http://127.0.0.1:1", "key": "sk-0123456789", "fetchModels": false, "models": {"m": {}}}}}`,
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		mode os.FileMode
		say  string // in the output of config check, doctor and exec; empty: nothing is found
		code int    // of exec; 0: it is not run
	}{
		{"config.json", 0o600, "", 0},
		{"config.json", 0o644, "providers.mine.key is a secret, and other users can read this file: run `chmod 600 " + at("config.json") + "`", 1},
		{"config.json", 0o666, "other users can change it, because they can write to " + at("config.json") + " (mode 0666): run `chmod go-w " + at("config.json") + "`", 1},
		{".", 0o777, "they can write to " + dir + " (mode 0777): run `chmod go-w " + dir + "`", 1},
		{".", os.ModeSticky | 0o777, "", 0}, // only owners can replace files
	} {
		before, err := os.Stat(at(c.name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(c.name), c.mode); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"config", "check"}, {"doctor", "--offline"}, {"exec", "hi"}} {
			if args[0] == "exec" && c.code == 0 {
				continue
			}
			stdout, stderr, code := runProgram(t, here, "", args...)
			said := stdout + stderr
			switch {
			case c.say == "" && (code != 0 || strings.Contains(said, "chmod")):
				t.Errorf("eca %q with %s %o: exit code %d, %s", args, c.name, c.mode, code, said)
			case c.say != "" && !strings.Contains(said, c.say):
				t.Errorf("eca %q with %s %o does not say %q: %s", args, c.name, c.mode, c.say, said)
			}
			if args[0] == "exec" && code != c.code {
				t.Errorf("eca exec with %s %o: exit code %d, %s", c.name, c.mode, code, said)
			}
		}
		if err := os.Chmod(at(c.name), before.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}
