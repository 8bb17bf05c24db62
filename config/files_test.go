package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A file that is broken or empty while it is edited or saved keeps its last version; a removed file
// has no effect any more.
func TestPreviousStaysInEffect(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.json")
	var last *Loaded
	load := func() (welcome string, problems int) {
		last = Load(Inputs{Getenv: env(nil), ConfigHome: home, Previous: last})
		return last.WelcomeMessage, len(last.Problems)
	}
	without, _ := load()
	for _, c := range []struct {
		text, welcome string
		problems      int
	}{
		{`{"welcomeMessage": bro`, without, 1},
		{`{"welcomeMessage": "1"}`, "1", 0},
		{`{"welcomeMessage": "2`, "1", 1},
		{`[]`, "1", 1},
		{"", "1", 1},
		{"\xef\xbb\xbf\n", "1", 1},
		{`{"welcomeMessage"`, "1", 1},
		{`{}`, without, 0},
		{"", without, 1},
		{`{`, without, 1},
		{`{"welcomeMessage": "3"} // the end`, "3", 0},
	} {
		write(t, path, c.text)
		if welcome, problems := load(); welcome != c.welcome || problems != c.problems {
			t.Errorf("%q: %q, %v", c.text, welcome, last.Problems)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if welcome, problems := load(); welcome != without || problems != 0 {
		t.Errorf("without the file: %q, %v", welcome, last.Problems)
	}
}

// A dangling link is reported, whether it is the file or one of its folders.
func TestDanglingLink(t *testing.T) {
	dir := t.TempDir()
	needs.Symlink(t, filepath.Join(dir, "nowhere"), filepath.Join(dir, "folder"))
	needs.Symlink(t, "gone.json", filepath.Join(dir, "config.json"))
	for _, home := range []string{dir, filepath.Join(dir, "folder"), filepath.Join(dir, "folder", "sub")} {
		l := Load(Inputs{Getenv: env(nil), ConfigHome: home})
		if broken := l.Broken(); len(broken) != 1 || !strings.Contains(broken[0], "which does not exist; create that, or remove the link") || !l.Configured() {
			t.Errorf("%s: %q", home, broken)
		}
	}
	other := filepath.Join(dir, "other")
	if l := Load(Inputs{Getenv: env(nil), ConfigHome: other}); len(l.Problems) > 0 {
		t.Errorf("no link: %v", l.Problems)
	}
}

// Some editors remove a file before they write it again. A missing file keeps its last version
// until it is certain that it stays away, and so do the files that it includes.
func TestBrieflyMissingFile(t *testing.T) {
	home := t.TempDir()
	path, included := filepath.Join(home, "config.json"), filepath.Join(home, "welcome.txt")
	gone := map[string]bool{}
	var last *Loaded
	load := func() string {
		last = Load(Inputs{Getenv: env(nil), ConfigHome: home, Previous: last, Removed: func(path string) bool { return gone[path] }})
		return last.WelcomeMessage
	}
	without := load()
	write(t, included, "hello")
	write(t, path, `{"welcomeMessage": "${file:welcome.txt}"}`)
	if got := load(); got != "hello" {
		t.Fatalf("at first: %q", got)
	}
	remove := func(path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	remove(included)
	for range 2 {
		if got := load(); got != "hello" || len(last.Problems) != 0 {
			t.Errorf("without the included file: %q, %v", got, last.Problems)
		}
	}
	write(t, included, "hello again")
	remove(path)
	for range 2 {
		if got := load(); got != "hello again" || len(last.Problems) != 0 {
			t.Errorf("without the file: %q, %v", got, last.Problems)
		}
	}
	write(t, path, `{"welcomeMessage": "other"}`)
	if got := load(); got != "other" {
		t.Errorf("written again: %q", got)
	}
	remove(path)
	if got := load(); got != "other" {
		t.Errorf("without the file again: %q", got)
	}
	gone[path] = true
	if got := load(); got != without {
		t.Errorf("when it stays away: %q", got)
	}
}

// The configuration lists the files that it depends on, and names the file in which to change a
// value.
func TestFilesAndOwner(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	global, local := filepath.Join(home, "config.json"), filepath.Join(root, ".eca", "config.json")
	write(t, local, `{"providers": {"mine": {"key": "${file:key.txt}"}}, "prompts": {"chat": "${file:/none}"}}`)
	in := Inputs{Getenv: env(map[string]string{"ECA_CONFIG": `{"defaultModel": "x/y"}`}), ConfigHome: home, Roots: []string{root}}
	l := Load(in)
	want := []string{global, local, filepath.Join(root, ".eca", "key.txt"), "/none"}
	slices.Sort(want)
	if filepath.Separator == '/' && !slices.Equal(l.Files, want) {
		t.Errorf("files %q, want %q", l.Files, want)
	}
	for key, want := range map[string]string{"mine": local, "openai": global, "nobody": global} {
		if got := l.Owner("providers", key); got != want {
			t.Errorf("owner of %s: %s, want %s", key, got, want)
		}
	}
	if got := l.Owner("defaultModel"); got != global {
		t.Errorf("owner of a value from the environment: %s", got)
	}
	in.ConfigFile = filepath.Join(home, "other.json")
	if l := Load(in); l.Owner("defaultModel") != in.ConfigFile || !slices.Equal(l.Files, []string{in.ConfigFile}) {
		t.Errorf("with --config-file: %q %q", l.Owner("defaultModel"), l.Files)
	}
}

// Some keys are the user's, and pureConfig the client's. In a workspace's file they have no effect,
// trusted or not, and trust is not asked for them.
func TestUserOnlyKeys(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(home, "config.json"):         `{"network": {"clientCert": "mine.pem"}, "pureConfig": true, "providers": {"p": {"httpClient": "http-1.1"}, "q": {"httpClient": {"version": "http-7"}}}}`,
		filepath.Join(root, ".eca", "config.json"): "{\n\"network\": {\"caCertFile\": \"theirs.pem\"},\n\"chatRetentionDays\": 1,\n\"claudeFiles\": true,\n\"pureConfig\": true}",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	trusts := func(u Unit) bool {
		t.Errorf("asked to trust %+v", u.Needs)
		return true
	}
	cfg := Load(Inputs{Getenv: func(string) string { return "" }, ConfigHome: home, Roots: []string{root}, Trusts: trusts})
	if cfg.Network != (Network{ClientCert: "mine.pem"}) || cfg.ChatRetentionDays != 0 || cfg.ClaudeFiles || cfg.PureConfig {
		t.Errorf("%+v", cfg.Config)
	}
	var got []string
	for _, p := range cfg.Problems {
		got = append(got, p.String())
	}
	workspace := filepath.Join(root, ".eca", "config.json")
	want := []string{
		workspace + ":2:1: network can be set only in your own configuration, not in a workspace's or a plugin's; it is ignored",
		workspace + ":3:1: chatRetentionDays can be set only in your own configuration, not in a workspace's or a plugin's; it is ignored",
		workspace + ":4:1: claudeFiles can be set only in your own configuration, not in a workspace's or a plugin's; it is ignored",
		workspace + ":5:1: pureConfig has an effect only in initializationOptions; it is ignored",
		filepath.Join(home, "config.json") + ":1:41: pureConfig has an effect only in initializationOptions; it is ignored",
		filepath.Join(home, "config.json") + `:1:129: providers.q.httpClient.version must be one of http-1.1, http-2, not "http-7"; it is ignored; did you mean "http-2"?`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("problems %q", got)
	}
	if v := cfg.Providers["p"].HTTPClient.Version; v != "http-1.1" {
		t.Errorf("a version as a word: %q", v)
	}
}
