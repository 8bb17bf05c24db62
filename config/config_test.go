package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func env(kv map[string]string) func(string) string {
	return func(k string) string { return kv[k] }
}

// Higher layers win value by value, and every value has its origin.
func TestLayers(t *testing.T) {
	home, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, "config.json"), "// mine\n{\n  \"welcomeMessage\": \"global\",\n  \"chat\": {\"defaultTrust\": true},\n  \"defaultModel\": \"global/m\"\n}")
	write(t, filepath.Join(a, ".eca/config.json"), `{"defaultModel": "a/m", /* kept */ "disabledTools": ["x"]}`)
	write(t, filepath.Join(b, ".eca/config.json"), `{"chat": {"title": false}}`)
	in := Inputs{
		InitOptions: json.RawMessage(`{"welcomeMessage": "init", "defaultModel": "init/m", "chatBehavior": "plan"}`),
		Getenv:      env(map[string]string{"ECA_CONFIG": `{"defaultModel": "env/m", "providers": {"myCompany": {"api": "openai-chat"}}}`, "MY_COMPANY_API_KEY": "k"}),
		ConfigHome:  home, Roots: []string{a, b},
	}
	l := Load(in)
	if len(l.Problems) > 0 {
		t.Errorf("problems: %v", l.Problems)
	}
	if l.DefaultModel != "a/m" || l.WelcomeMessage != "global" || !l.Chat.DefaultTrust || l.Chat.Title || l.DefaultAgent != "plan" {
		t.Errorf("%+v", l.Config)
	}
	if p := l.Providers["my-company"]; p.API != "openai-chat" || p.Key != "k" {
		t.Errorf("provider: %+v", p)
	}
	if l.Providers["openai"].URL != "https://api.openai.com" || l.ToolCall.ReadFile.MaxLines != 2000 {
		t.Error("defaults are gone")
	}
	for path, want := range map[string]string{
		"defaultModel":                   filepath.Join(a, ".eca/config.json") + ":1",
		"welcomeMessage":                 filepath.Join(home, "config.json") + ":3",
		"chat\x00defaultTrust":           filepath.Join(home, "config.json") + ":4",
		"chat\x00title":                  filepath.Join(b, ".eca/config.json") + ":1",
		"providers\x00my-company\x00key": "environment variable MY_COMPANY_API_KEY",
		"providers\x00my-company\x00api": "ECA_CONFIG:1",
	} {
		if o, ok := l.Origin(strings.Split(path, "\x00")...); !ok || o.String() != want {
			t.Errorf("origin of %q: %s, want %s", path, o, want)
		}
	}

	// --config-file replaces the files; pureConfig replaces everything except defaults and options.
	other := filepath.Join(t.TempDir(), "other.json")
	write(t, other, `{"defaultModel": "other/m"}`)
	in.ConfigFile = other
	if l := Load(in); l.DefaultModel != "other/m" || l.WelcomeMessage != "init" {
		t.Errorf("--config-file: %q %q", l.DefaultModel, l.WelcomeMessage)
	}
	in.InitOptions = json.RawMessage(`{"pureConfig": true, "welcomeMessage": "pure"}`)
	if l := Load(in); l.DefaultModel != "" || l.WelcomeMessage != "pure" {
		t.Errorf("pureConfig: %q %q", l.DefaultModel, l.WelcomeMessage)
	}
	// Only workspace files are checked for trust.
	in.InitOptions, in.ConfigFile = nil, ""
	in.Trusts = func(u Unit) bool {
		t.Errorf("asked about %+v", u)
		return false
	}
	if l := Load(in); l.DefaultModel != "a/m" || !l.Chat.DefaultTrust || len(l.Units) > 0 {
		t.Errorf("restricted: %q %v", l.DefaultModel, l.Units)
	}
}

// Broken parts are reported with file, line and cause; the rest works.
func TestProblems(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	global, local := filepath.Join(home, "config.json"), filepath.Join(root, ".eca/config.json")
	write(t, global, "{\n  \"welcomeMessage\": \"hi\",\n  \"chat\": 5,\n  \"toolCall\": {\"readFile\": {\"maxLines\": \"many\"}},\n  \"providers\": {\"x\": {\"api\": \"openai-chat\", \"cacheRetention\": \"hour\",\n  \"models\": {\"m.1\": {\"limit\": {\"context\": \"big\"}, \"reasoningHistory\": \"none\"}, \"m.2\": {\"reasoningHistory\": \"turn\"}}}}\n}")
	write(t, local, "{\n  \"defaultModel\": \"a/m\",\n  oops\n}")
	l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": "[1]"}), ConfigHome: home, Roots: []string{root}})
	got := ""
	for _, p := range l.Problems {
		got += p.String() + "\n"
	}
	for _, want := range []string{
		"ECA_CONFIG: it must be the configuration itself, as JSON text",
		local + ":3:3: ",
		global + ":3:3: chat must be an object, not the number 5",
		global + ":4:29: toolCall.readFile.maxLines must be a whole number, not a string",
		global + `:5:45: providers.x.cacheRetention must be one of short, long, not "hour"; it is ignored`,
		global + `:6:51: providers.x.models."m.1".reasoningHistory must be one of all, turn, off, not "none"; it is ignored`,
		global + `:6:32: providers.x.models."m.1".limit.context must be a whole number, not a string`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no problem %q in:\n%s", want, got)
		}
	}
	if l.WelcomeMessage != "hi" || l.Providers["x"].CacheRetention != "" || l.Providers["x"].Models["m.2"].History != "turn" || l.Providers["x"].API != "openai-chat" || l.ToolCall.ShellCommand.SummaryMaxLength != 35 {
		t.Errorf("the valid parts of the configuration have no effect: %+v", l.Config)
	}
	if l := Load(Inputs{Getenv: env(nil), ConfigFile: "/does/not/exist.json"}); len(l.Problems) != 1 || !strings.Contains(l.Problems[0].String(), "does not exist") {
		t.Errorf("missing --config-file: %v", l.Problems)
	}
	if runtime.GOOS != "windows" {
		if l := Load(Inputs{Getenv: env(nil), ConfigFile: "/dev/zero"}); len(l.Problems) != 1 || !strings.Contains(l.Problems[0].String(), "not a regular file") {
			t.Errorf("a file without end: %v", l.Problems)
		}
	}
}

// Loading any file gives a usable configuration.
func FuzzLoad(f *testing.F) {
	f.Add(`{"providers": {"a": {"models": {"m": {"cost": {"input": 1}}}}}}`)
	f.Add(`{"chat": [], "agent": {"code": 7}, "toolCall": {"approval": {"allow": []}}}`)
	f.Add("{// x\n\"a\":${env:X}}")
	f.Add(`{"agent": {"": {}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": text}), InitOptions: json.RawMessage(text)})
		if l.Config == nil {
			t.Fatal("Load returned no configuration")
		}
		if name := l.AgentOrDefault("nobody"); name == "" {
			t.Error("AgentOrDefault returned no agent")
		}
	})
}
