package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// extraConfigs override all other files, the later ones the earlier ones. Missing and broken ones are reported, and
// their own extraConfigs are ignored.
func TestExtraConfigs(t *testing.T) {
	home, root, other := t.TempDir(), t.TempDir(), t.TempDir()
	global := filepath.Join(home, "config.json")
	write(t, filepath.Join(root, "a.json"), `{"welcomeMessage": "a", "defaultModel": "a/a", "extraConfigs": ["c.json"], "providers": {"p": {"url": "http://u"}}}`)
	write(t, filepath.Join(root, "c.json"), `{"welcomeMessage": "c"}`)
	write(t, filepath.Join(other, "b.json"), `{"welcomeMessage": "b", "prompts": {"chat": "${file:b.md}"}}`)
	write(t, filepath.Join(other, "b.md"), "from b")
	write(t, filepath.Join(root, ".eca", "config.json"), `{"defaultModel": "root/m", "providers": {"p": {"api": "openai-chat"}}}`)
	write(t, global, "{\n\"extraConfigs\": [\"a.json\", \"${env:OTHER}/b.json\", \"none.json\"]\n}")
	in := Inputs{Getenv: env(map[string]string{"OTHER": other}), ConfigHome: home, Roots: []string{root}}
	l := Load(in)
	if l.WelcomeMessage != "b" || l.DefaultModel != "a/a" || l.Prompts.Chat != "from b" || l.Providers["p"].URL != "http://u" || l.Providers["p"].API != "openai-chat" {
		t.Errorf("%q %q %q %+v", l.WelcomeMessage, l.DefaultModel, l.Prompts.Chat, l.Providers["p"])
	}
	if len(l.Problems) != 1 || l.Problems[0].String() != global+":2:1: extraConfigs: there is no file "+filepath.Join(root, "none.json") {
		t.Errorf("problems: %v", l.Problems)
	}
	for _, file := range []string{"a.json", "none.json"} {
		if !slices.Contains(l.Files, filepath.Join(root, file)) {
			t.Errorf("%s is not watched: %q", file, l.Files)
		}
	}
	if got := l.Owner("welcomeMessage"); got != filepath.Join(other, "b.json") {
		t.Errorf("owner %s", got)
	}
	// A single file may be a string, and pureConfig ignores extraConfigs.
	write(t, global, `{"extraConfigs": "c.json"}`)
	if l := Load(in); l.WelcomeMessage != "c" || len(l.Problems) > 0 {
		t.Errorf("%q %v", l.WelcomeMessage, l.Problems)
	}
	in.InitOptions = json.RawMessage(`{"pureConfig": true, "extraConfigs": ["c.json"], "welcomeMessage": "pure"}`)
	if l := Load(in); l.WelcomeMessage != "pure" {
		t.Errorf("pure: %q", l.WelcomeMessage)
	}
	// A file named by a workspace's file has the same rights.
	in.InitOptions = nil
	write(t, global, `{}`)
	write(t, filepath.Join(root, ".eca", "config.json"), `{"extraConfigs": ["c.json"]}`)
	trusted := map[string]bool{filepath.Join(root, ".eca", "config.json"): true}
	var asked []string
	in.Trusts = func(u Unit) bool {
		asked = append(asked, u.File+" "+u.Needs[0].What)
		return trusted[u.File]
	}
	want := filepath.Join(root, ".eca", "config.json") + " extraConfigs"
	if l := Load(in); l.WelcomeMessage != "c" || strings.Join(asked, "; ") != want {
		t.Errorf("trusted: %q, asked about %q", l.WelcomeMessage, asked)
	}
	// The content of such a file is checked, too, and so is that of a file in the folder that the
	// user's configuration names.
	write(t, filepath.Join(root, "c.json"), `{"welcomeMessage": "c", "netrcFile": "/n"}`)
	for _, text := range []string{`{}`, `{"extraConfigs": ["c.json"]}`} {
		write(t, global, text)
		asked = nil
		if l := Load(in); l.WelcomeMessage != "c" || l.NetrcFile != "" || asked[len(asked)-1] != filepath.Join(root, "c.json")+" netrcFile" {
			t.Errorf("%s: %q %q, asked about %q", text, l.WelcomeMessage, l.NetrcFile, asked)
		}
	}
	trusted = nil
	write(t, global, `{}`)
	if l := Load(in); l.WelcomeMessage == "c" {
		t.Error("a file that is not trusted named another one")
	}
}

// The user's configuration overrides a plugin's, which has its own file as origin, and cannot add other
// plugins.
func TestPluginLayers(t *testing.T) {
	home, plugin := t.TempDir(), t.TempDir()
	file := filepath.Join(plugin, "eca.json")
	write(t, file, "{\"welcomeMessage\": \"plugin\", \"defaultModel\": \"plugin/m\",\n\"plugins\": {\"install\": [\"more\"]},\n"+
		`"prompts": {"chat": "at ${plugin:root}, ${file:p.md}"}, "mcpServers": {"s": {"command": "${plugin:root}/run", "args": ["${env:A}"]}}}`)
	write(t, filepath.Join(plugin, "p.md"), "p")
	write(t, filepath.Join(home, "config.json"), `{"welcomeMessage": "user ${plugin:root}"}`)
	in := Inputs{
		Getenv: env(map[string]string{"A": "x"}), ConfigHome: home, InitOptions: json.RawMessage(`{"defaultModel": "client/m"}`),
		PluginLayers: []PluginLayer{{File: file, Root: plugin}, {File: filepath.Join(plugin, "hooks.json"), Root: plugin, Text: []byte(`{"chat": {"defaultTrust": true}}`)}},
	}
	l := Load(in)
	if l.WelcomeMessage != "user " || l.DefaultModel != "client/m" || l.Prompts.Chat != "at "+plugin+", p" || !l.Chat.DefaultTrust || len(l.Plugins.Install) > 0 {
		t.Errorf("%q %q %q", l.WelcomeMessage, l.DefaultModel, l.Prompts.Chat)
	}
	if s := l.MCPServers["s"]; s.Command != plugin+"/run" || s.Args[0] != "${env:A}" {
		t.Errorf("%+v", s)
	}
	got := ""
	for _, p := range l.Problems {
		got += p.String() + "\n"
	}
	for _, want := range []string{file + ":2:1: plugins cannot be set by a plugin", "config.json:1:2: welcomeMessage: ${plugin:root} can be used only in the files of a plugin"} {
		if !strings.Contains(got, want) {
			t.Errorf("no problem %q in %s", want, got)
		}
	}
	if o := l.Owner("prompts", "chat"); o != filepath.Join(home, "config.json") {
		t.Errorf("the owner of a plugin's value is %s", o)
	}
	in.PluginLayers = []PluginLayer{{File: filepath.Join(plugin, "none.json")}, {File: "broken", Text: []byte("{\n x")}}
	if l := Load(in); len(l.Problems) != 3 || !strings.Contains(l.Problems[1].String()+l.Problems[0].String(), "none.json") {
		t.Errorf("%v", l.Problems)
	}
	in.InitOptions = json.RawMessage(`{"pureConfig": true}`)
	if l := Load(in); len(l.Problems) != 0 {
		t.Errorf("pure: %v", l.Problems)
	}
}

// The hooks.json of a plugin has hooks by name, with or without an enclosing object "hooks".
func TestPluginHooks(t *testing.T) {
	for _, text := range []string{`%s`, `{"hooks": %s}`} {
		hooks := `{"check": {"type": "preRequest", "descrption": "x", "actions": [{"type": "shell", "shell": "true"}]}}`
		l := Load(Inputs{Getenv: env(nil), PluginLayers: []PluginLayer{{File: "hooks.json", Hooks: "p::", Text: fmt.Appendf(nil, text, hooks)}}})
		if found := l.Findings(); len(found) != 1 || !strings.Contains(found[0].Message, "unknown key hooks.check.descrption") || l.Hooks["p::check"].Type != "preRequest" {
			t.Errorf("%s: %v", text, found)
		}
	}
}

// Keys of earlier versions work, and problems with them have a position.
func TestLegacy(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p.md"), "of a file")
	for text, is := range map[string]func(l *Loaded) bool{
		`{"compactPrompt": "x"}`:                                                          func(l *Loaded) bool { return l.Prompts.Compact == "x" },
		`{"compactPromptFile": "` + dir + `/p.md"}`:                                       func(l *Loaded) bool { return l.Prompts.Compact == "of a file" },
		`{"compactPromptFile": "p.md"}`:                                                   func(l *Loaded) bool { return l.Prompts.Compact == "of a file" },
		`{"compactPromptFile": "prompts/title.md"}`:                                       func(l *Loaded) bool { return l.Prompts.Compact == l.Prompts.ChatTitle },
		`{"completion": {"systemPrompt": "x"}}`:                                           func(l *Loaded) bool { return l.Prompts.Completion == "x" },
		`{"rewrite": {"systemPromptFile": "p.md"}}`:                                       func(l *Loaded) bool { return l.Prompts.Rewrite == "of a file" },
		`{"behavior": {"build": {"systemPromptFile": "p.md"}}}`:                           func(l *Loaded) bool { return l.Agents["code"].SystemPrompt == "of a file" },
		`{"defaultBehavior": "plan"}`:                                                     func(l *Loaded) bool { return l.DefaultAgent == "plan" },
		`{"chat": {"defaultBehavior": "plan"}}`:                                           func(l *Loaded) bool { return l.Chat.DefaultAgent == "plan" },
		`{"chat": {"welcomeMessage": "x"}}`:                                               func(l *Loaded) bool { return l.WelcomeMessage == "x" },
		`{"prompts": {"compact": "new"}, "compactPrompt": "old"}`:                         func(l *Loaded) bool { return l.Prompts.Compact == "new" },
		`{"toolCall": {"manualApproval": false}}`:                                         func(l *Loaded) bool { return l.ToolCall.Approval.ByDefault == "allow" },
		`{"toolCall": {"manualApproval": ["eca__grep"], "approval": {"ask": {"x": {}}}}}`: func(l *Loaded) bool { return len(l.ToolCall.Approval.Ask) == 2 },
		`{"hooks": {"h": {"type": "prePrompt"}}}`:                                         func(l *Loaded) bool { return l.Hooks["h"].Type == "preRequest" },
		`{"agent": {"x": {"spawnableBy": []}, "y": {"spawnableBy": null}, "z": {"inherit": "x"}}}`: func(l *Loaded) bool {
			spawnable := l.Spawnable("code")
			return !slices.Contains(spawnable, "x") && slices.Contains(spawnable, "y") && !slices.Contains(spawnable, "z")
		},
		`{"agent": {"x": {"mode": ["subagent"], "spawnableBy": "code"}}}`: func(l *Loaded) bool {
			return !l.Agents["x"].Primary() && l.Agents["x"].Subagent() && slices.Equal(l.Agents["x"].SpawnableBy, Strings{"code"})
		},
		`{"providers": {"p": {"requiresAuth?": false, "httpClient": "http-1.1"}}}`: func(l *Loaded) bool {
			return l.Providers["p"].RequiresAuth != nil && l.Providers["p"].HTTPClient.Version == "http-1.1"
		},
		`{"providers": {"myCo": {"url": "1"}, "my-co": {"url": "2"}}}`: func(l *Loaded) bool { return l.Providers["my-co"].URL == "2" },
		`{"providers": {"my-co": {"url": "2"}, "myCo": {"url": "1"}}}`: func(l *Loaded) bool { return l.Providers["my-co"].URL == "1" },
	} {
		path := filepath.Join(dir, "config.json")
		write(t, path, text)
		l := Load(Inputs{Getenv: env(nil), ConfigHome: dir})
		if !is(l) || len(l.Problems) > 0 {
			t.Errorf("%s: %v", text, l.Problems)
		}
	}
	write(t, filepath.Join(dir, "config.json"), "{\n  \"behavior\": {\n    \"mine\": {\"maxSteps\": \"x\"}}}")
	l := Load(Inputs{Getenv: env(nil), ConfigHome: dir})
	if len(l.Problems) != 1 || !strings.Contains(l.Problems[0].String(), "config.json:3:14: agent.mine.maxSteps must be a whole number") {
		t.Errorf("%v", l.Problems)
	}
}

// A provider's missing key is taken from the environment, then from the netrc file, then from the variable in
// keyEnv; a value from the user wins each time.
func TestKeyFallbacks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rc"), "machine host login me password of-netrc\n")
	text := `{"netrcFile": "${env:DIR}/rc", "providers": {"p": {"keyRc": "me@host", "keyEnv": "OWN", "urlEnv": "OWN_URL"}, "q": {"key": "x ${netrc:host}", "keyRc": "none"}, "r": {"keyRc": "none"}}}`
	vars := map[string]string{"ECA_CONFIG": text, "DIR": dir, "OWN": "of-own", "OWN_URL": "http://own", "P_API_KEY": "of-variable"}
	key := func() string {
		l := Load(Inputs{Getenv: env(vars)})
		o, _ := l.Origin("providers", "p", "key")
		if !o.Shared() || l.Providers["p"].URL != "http://own" || l.Providers["q"].Key != "x of-netrc" {
			t.Errorf("%v: %+v", o, l.Providers)
		}
		if !slices.Contains(l.Secrets(), "of-netrc") || !slices.Contains(l.Files, filepath.Join(dir, "rc")) {
			t.Errorf("secrets %q, files %q", l.Secrets(), l.Files)
		}
		if len(l.Problems) > 0 {
			t.Errorf("%v", l.Problems)
		}
		return l.Providers["p"].Key + " from " + o.String()
	}
	for _, want := range []string{"of-variable from environment variable P_API_KEY", "of-netrc from netrc file " + filepath.Join(dir, "rc"), "of-own from environment variable OWN"} {
		if got := key(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		delete(vars, "P_API_KEY")
		if strings.HasPrefix(want, "of-netrc") {
			vars["ECA_CONFIG"] = strings.Replace(text, `"keyRc": "me@host", `, "", 1)
		}
	}
}
