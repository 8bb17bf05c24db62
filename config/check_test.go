package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each mistake is reported once, with its place and the intended key.
// A tool of providers is reported where the wire format has none, and only there.
func TestCheckProviderTools(t *testing.T) {
	l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": `{"providers": {
		"a": {"api": "anthropic", "models": {"m": {"webSearch": true, "imageGeneration": true}}},
		"o": {"api": "ollama", "models": {"m": {"webSearch": true}, "n": {"webSearch": false}}},
		"r": {"api": "openai-responses", "models": {"m": {"webSearch": true, "imageGeneration": true}}}
	}}`}), ConfigHome: t.TempDir()})
	var got []string
	for _, f := range l.Findings() {
		got = append(got, f.String())
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"providers.a.models.m.imageGeneration: the wire format anthropic has no such tool", "providers.o.models.m.webSearch: the wire format ollama has no such tool"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	if n := strings.Count(all, "no such tool"); n != 2 {
		t.Errorf("%d findings:\n%s", n, all)
	}
}

func TestCheck(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, "config.json"), `{
  "toolCal": {},
  "chat": {"titel": true, "title": "yes"},
  "autoCompactPercentage": 120, "maxLines": 5,
  "providers": {
    "myCo": {"api": "openai-chatt", "models": {"m.1": {"limit": {"context": -1}, "reasoningHistory": "none"}}},
    "my-co": {"api": "anthropic", "key": "${plugin:root}", "retry": {"maxRetries": 1.5}}
  },
  "agent": {"x": {"mode": ["primary", "secondary"], "spawnableBy": 5}},
  "compactPrompt": "old", "chat": null,
  "defaultAgent": "cod", "defaultModel": "antropic/m", "completion": {"model": "myCo/m"},
  "disabledTools": ["a", 7], "$schema": "x",
  "plugins": {"mine": {"source": "x", "branch": "y"}, "install": ["a"]}
}`)
	write(t, filepath.Join(root, ".eca", "config.json"), "{\n  \"a\": 1,\n  oops\n}")
	l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": `{"remote": {"port": 70000}, "hooks": {"h": {"type": "preToolcall", "actions": [{"timeout": "1"}]}}}`}), ConfigHome: home, Roots: []string{root}})
	var got []string
	for _, f := range l.Findings() {
		got = append(got, strings.NewReplacer(home, "HOME", root, "ROOT", `\`, "/").Replace(f.String()))
	}
	want := []string{
		`HOME/config.json:2:3: warning: unknown key toolCal; it has no effect; did you mean toolCall?`,
		`HOME/config.json:3:12: warning: unknown key chat.titel; it has no effect; did you mean chat.title?`,
		`HOME/config.json:3:27: error: chat.title must be true or false, not a string; it is ignored`,
		`HOME/config.json:4:3: error: autoCompactPercentage must be between 0 and 100, not 120; it is ignored`,
		`HOME/config.json:4:33: warning: unknown key maxLines; it has no effect; did you mean toolCall.readFile.maxLines?`,
		`HOME/config.json:6:14: error: providers.myCo.api must be one of openai-responses, openai, openai-chat, anthropic, google, ollama, bedrock, cassette, not "openai-chatt"; did you mean "openai-chat"?`,
		`HOME/config.json:6:66: error: providers.myCo.models."m.1".limit.context must be at least 0, not -1; it is ignored`,
		`HOME/config.json:6:82: error: providers.myCo.models."m.1".reasoningHistory must be one of all, turn, off, not "none"`,
		`HOME/config.json:7:5: warning: providers.my-co is also in line 6; only this one counts`,
		`HOME/config.json:7:35: error: providers.my-co.key: ${plugin:root} can be used only in the files of a plugin`,
		`HOME/config.json:7:70: error: providers.my-co.retry.maxRetries must be a whole number, not the number 1.5; it is ignored`,
		`HOME/config.json:9:39: error: agent.x.mode.1 must be one of primary, subagent, not "secondary"; it is ignored`,
		`HOME/config.json:9:53: error: agent.x.spawnableBy must be a string or a list, not the number 5; it is ignored`,
		`HOME/config.json:10:3: note: compactPrompt still works; it is the earlier name of prompts.compact`,
		`HOME/config.json:10:27: warning: chat is also in line 3; only this one counts`,
		`HOME/config.json:11:3: error: defaultAgent: there is no agent "cod", so code is used; did you mean code?`,
		`HOME/config.json:11:26: error: defaultModel: there is no provider "antropic"; did you mean anthropic?`,
		`HOME/config.json:12:26: error: disabledTools.1 must be a string, not the number 7; it is ignored`,
		`HOME/config.json:13:39: warning: unknown key plugins.mine.branch; it has no effect`,
		`ROOT/.eca/config.json:3:3: error: invalid JSON: oops is not a value; the file must be an object in braces ({), and texts must be in double quotes`,
		`ECA_CONFIG:1:13: error: remote.port must be between 0 and 65535, not 70000; it is ignored`,
		`ECA_CONFIG:1:45: error: hooks.h.type must be one of sessionStart, sessionEnd, chatStart, chatEnd, chatStatusChanged, subagentStart, preRequest, postRequest, subagentPostRequest, preToolCall, postToolCall, preCompact, postCompact, prePrompt, postPrompt, not "preToolcall"; did you mean "preToolCall"?`,
		`ECA_CONFIG:1:81: error: hooks.h.actions.0.timeout must be a whole number, not a string; it is ignored`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if l.Completion.Model != "my-co/m" {
		t.Errorf("the model's provider is called %s", l.Completion.Model)
	}
	if clean := Load(Inputs{Getenv: env(nil), ConfigHome: t.TempDir()}).Findings(); len(clean) > 0 {
		t.Errorf("Findings without any configuration: %v", clean)
	}
}

// If no other agent is left for chats, they can use the agent code although its mode is subagent.
func TestNoAgentForChats(t *testing.T) {
	l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": `{"agent": {"code": {"mode": "subagent"}}}`}), ConfigHome: t.TempDir()})
	found := l.Findings()
	want := `ECA_CONFIG:1:21: error: agent.code.mode: chats would have no agent, so code stays one that they can use; set defaultAgent to another one`
	if len(found) != 1 || found[0].String() != want {
		t.Errorf("%v", found)
	}
	if agent, known := l.FindAgent("code"); agent != "code" || !known {
		t.Errorf("%s, %t", agent, known)
	}
}

func TestKeyPath(t *testing.T) {
	for path, want := range map[string]string{
		"a": "a", "a\x00b": "a.b", "a\x00m.1\x00b": `a."m.1".b`, "\x00x": `"".x`, "say \"hi\"\x00b": `"say \"hi\"".b`,
	} {
		keys := strings.Split(path, "\x00")
		if got := KeyPath(keys); got != want {
			t.Errorf("%q: %s, want %s", keys, got, want)
		}
		if got, err := ParseKeyPath(want); err != nil || cmp.Diff(keys, got) != "" {
			t.Errorf("%s: %q %v", want, got, err)
		}
	}
	for _, text := range []string{"", ".", "a.", "a..b", `"a`, `"a"b`} {
		if got, err := ParseKeyPath(text); err == nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// Checking any file ends, and shows no secret from the environment.
func FuzzCheck(f *testing.F) {
	f.Add(`{"providers": {"a": {"key": "${env:SECRET}", "api": "${env:SECRET}"}}, "toolCal": 1}`)
	f.Add(`{"chat": [], "agent": {"code": 7}, "agent": {"code": {"mode": [1]}}}`)
	f.Add("{\"hooks\": {\"\": {\"actions\": [{}, null]}},\n// x\n\"providers\": {\"A\": {}, \"a\": null}}")
	f.Fuzz(func(t *testing.T, text string) {
		l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": text, "SECRET": "hidden-value"})})
		for _, x := range l.Findings() {
			if strings.Contains(x.String(), "hidden-value") && !strings.Contains(text, "hidden-value") {
				t.Errorf("a finding shows a secret: %s", x)
			}
			if x.Line < 0 || x.Line > 1+strings.Count(text, "\n") {
				t.Errorf("there is no line %d", x.Line)
			}
		}
		for _, v := range l.Values() {
			if strings.Contains(v.Text(), "hidden-value") && !strings.Contains(text, "hidden-value") {
				t.Errorf("%s shows a secret: %s", KeyPath(v.Path), v.Text())
			}
		}
	})
}
