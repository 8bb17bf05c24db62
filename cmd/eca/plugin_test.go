package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The command line installs, shows and uninstalls plugins in the user's own file.
func TestPluginCommand(t *testing.T) {
	home, source := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("ECA_CONFIG", "")
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		filepath.Join(source, ".eca-plugin", "marketplace.json"): `{"plugins": [{"name": "one", "description": "The one", "source": "one"}, {"name": "wrong", "source": "wrong"}, {"name": "a b", "source": "one"}]}`,
		filepath.Join(source, "one", "README.md"):                "Nothing yet.",
		filepath.Join(source, "wrong", "hooks", "hooks.json"):    `{"watch": {"type": "preToolcall", "actions": [{"type": "shell", "shell": "true"}]}}`,
		filepath.Join(home, "eca", "config.json"):                "{\n  // mine\n  \"plugins\": {\"here\": {\"source\": " + strconv.Quote(source) + `}, "gone": {"source": ` + strconv.Quote(filepath.Join(home, "gone")) + "}}\n}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"plugin list here", 0, "- **one**: The one"},
		{"plugin list here", 0, `plugin 3 is ignored: its name "a b" must be one word`},
		{"plugin list", 0, `plugin 3 is ignored`},
		{"plugin install wrong", 0, "hooks.wrong::watch"},
		{"plugin uninstall wrong", 0, "Uninstalled"},
		{"plugin list gone", 1, "the source gone ("},
		{"plugin list", 0, "### Source gone"},
		{"plugin install one", 0, "Installed one@here."},
		{"plugin install one", 1, "one was not installed: one@here is installed already"},
		{"plugin install two@here", 1, "the source here has no plugin two"},
		{"plugin list", 0, "- **one** from here: The one"},
		{"plugin update here", 1, "is a folder; there is nothing to fetch"},
		{"plugin uninstall one", 0, "Uninstalled one@here."},
		{"plugin uninstall one", 1, `there is no plugin "one" installed`},
		{"plugin", 2, "Usage:"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), strings.NewReader(""), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("eca %s: exit code %d, %s", c.args, code, out.String())
		}
	}
	text, err := os.ReadFile(filepath.Join(home, "eca", "config.json"))
	if err != nil || !strings.Contains(string(text), "// mine") || strings.Contains(string(text), "one@here") {
		t.Errorf("%v: %s", err, text)
	}
}
