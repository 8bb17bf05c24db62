package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// If a daemon is killed while a command runs, the next daemon moves away the protected files that the
// command made, and says so. A second daemon that runs beside the first does not touch them.
func TestKilledCommandLeavesNoProtectedPlace(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - calls: [{id: c1, tool: eca__shell_command, arguments: {command: \"sh ./task.sh\", timeout: 600000}}]\n      - {text: Done.}\n")
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"chat":{"title":false},"toolCall":{"sandbox":"on","approval":{"byDefault":"allow"}}}`)
	script := "echo x > .envrc; mkdir n; echo x > n/.npmrc; touch made; sleep 1000\n"
	if err := os.WriteFile(filepath.Join(here.root, "task.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	first := here.serve(t)
	first.Open(here.root, nil)
	first.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "go"})
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(here.root, "made")); err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the command did not start")
		}
	}
	held := func() bool {
		_, envrc := os.Lstat(filepath.Join(here.root, ".envrc"))
		_, npmrc := os.Lstat(filepath.Join(here.root, "n", ".npmrc"))
		return os.IsNotExist(envrc) && os.IsNotExist(npmrc)
	}
	second := here.serve(t)
	second.Open(here.root, nil)
	if held() {
		t.Error("another daemon moved files of a command that still ran")
	}
	shutDown(t, second)
	first.kill9(t)

	third := here.serve(t)
	third.Open(here.root, nil)
	third.Await(0, "the notice", fake.Contains("$/showMessage", "an earlier command made", ".envrc", "it was moved to"))
	if !held() {
		t.Error("the next daemon did not move the protected files away")
	}
	shutDown(t, third)
}
