package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

// The start of a turn reads changed files of the configuration, without waiting for the watcher. As long
// as no file changes, it reads nothing.
func TestTurnReadsChangedConfiguration(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	save := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("eca.json", `{"welcomeMessage": "${file:greeting}", "claudeFiles": true, "hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "file": "/gone"}]}}, "otlp": {"a": [1]}}`)
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), ConfigFile: filepath.Join(dir, "eca.json"), Getenv: func(string) string { return "" }})
	defer d.Close()
	d.Configure(nil, []string{root})
	d.refreshExtensions()
	before := d.Config()
	if d.refreshExtensions(); d.Config() != before {
		t.Error("the configuration was read again although no file had changed")
	}
	save("greeting", "hello")
	if d.refreshExtensions(); d.Config().WelcomeMessage != "hello" {
		t.Errorf("after a change of an included file: %q", d.Config().WelcomeMessage)
	}
	save("eca.json", `{"welcomeMessage": "changed"}`)
	if d.refreshExtensions(); d.Config().WelcomeMessage != "changed" {
		t.Errorf("after a change of the configuration: %q", d.Config().WelcomeMessage)
	}
}
