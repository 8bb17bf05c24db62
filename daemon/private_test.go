package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// In a home folder as the workspace, eca asks before a command reads its keys.
func TestStateIsNotPartOfTheWorkspace(t *testing.T) {
	needs.POSIX(t)
	home := t.TempDir()
	state := filepath.Join(home, ".local", "state", "eca")
	if err := errors.Join(os.MkdirAll(state, 0o700), os.WriteFile(filepath.Join(state, "credentials.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d := New(Options{StateDir: state, CacheDir: t.TempDir(), Getenv: func(name string) string {
		return map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}[name]
	}})
	defer d.Close()
	d.Configure(nil, []string{home})
	for command, outside := range map[string]bool{
		"cat notes.txt": false, "cat .local/state/eca/credentials.json": true, "cat .local/*/eca/credentials.json": true,
	} {
		e, err := d.ExplainCommand(t.Context(), CommandQuestion{Command: command})
		if err != nil || strings.Contains(e.Verdict.Reason, "outside the workspace") != outside {
			t.Errorf("%s: %v %+v", command, err, e.Verdict)
		}
	}
}
