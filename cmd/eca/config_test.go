package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
)

// The output and the exit codes of the three commands about the configuration.
func TestConfigCommands(t *testing.T) {
	here := newPlace(t, `ECA_CONFIG={"providers": {"myCo": {"api": "openai-chat", "key": "sk-secret-0123456789", "url": "https://user:in-url@host", "models": {"m.1": {}}}, "ran": {"api": "openai-chat", "url": "http://127.0.0.1:1/v1", "key": "${cmd:touch was-run}"}}, "chat": {"titel": 1}}`)
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		out, stderr, code := runProgram(t, here, "", append([]string{"config"}, args...)...)
		if code != want {
			t.Errorf("%q: exit %d, want %d: %s%s", args, code, want, out, stderr)
		}
		if all := out + stderr; strings.Contains(all, "sk-secret") {
			t.Errorf("%q shows a secret: %s", args, all)
		}
		return out, stderr
	}
	if out, _ := run(1, "check"); !strings.HasPrefix(out, "ECA_CONFIG:1:") || !strings.Contains(out, ": warning: unknown key chat.titel; it has no effect; did you mean chat.title?\n") {
		t.Errorf("check: %s", out)
	}
	out, _ := run(1, "check", "--json")
	var found struct {
		OK       bool
		Findings []config.Finding
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.OK || len(found.Findings) != 1 || found.Findings[0].Key != "chat.titel" || found.Findings[0].Column == 0 {
		t.Errorf("check --json: %+v %v", found, err)
	}
	out, _ = run(0, "show")
	var all map[string]any
	if err := json.Unmarshal([]byte(out), &all); err != nil || all["autoCompactPercentage"] != 75.0 {
		t.Errorf("show: %v in %s", err, out)
	}
	for key, want := range map[string]string{
		"autoCompactPercentage":           "75\n",
		"providers.my-co.key":             "\"[REDACTED]\"\n",
		"providers.ran.key":               "\"[REDACTED]\"\n",
		`providers.myCo.models`:           "{\n  \"m.1\": {}\n}\n",
		`providers.my-co.models."m.1"`:    "{}\n",
		"toolCall.outputTruncation":       "{\n  \"lines\": 2000,\n  \"sizeKb\": 50\n}\n",
		"--origin providers.my-co.key":    "providers.my-co.key = [REDACTED]  // ECA_CONFIG:1\n",
		"--origin providers.ollama.url":   "providers.ollama.url = [REDACTED]  // environment variable OLLAMA_API_URL\n",
		"--origin toolCall.readFile":      "toolCall.readFile.maxLines = 2000  // defaults\n",
		"--origin providers.my-co.models": "providers.my-co.models.\"m.1\" = {}  // ECA_CONFIG:1\n",
	} {
		if out, _ := run(0, append([]string{"show"}, strings.Fields(key)...)...); !strings.HasPrefix(out, want) {
			t.Errorf("show %s: %q, want %q", key, out, want)
		}
	}
	for key, want := range map[string]string{
		"chat.titl":     "unknown key chat.titl; did you mean chat.title?",
		"network":       "network is not set",
		"a..b":          "is not a path of keys",
		"defaultModels": "did you mean defaultModel?",
	} {
		if _, stderr := run(1, "show", key); !strings.Contains(stderr, want) {
			t.Errorf("show %s: %q, want %q", key, stderr, want)
		}
	}
	out, _ = run(0, "schema")
	if want, err := config.Schema(); err != nil || out != string(want) {
		t.Errorf("schema: %v", err)
	}
	if _, stderr := run(2); !strings.Contains(stderr, "a command is missing") {
		t.Errorf("without a command: %s", stderr)
	}
	if _, err := os.Stat(filepath.Join(here.root, "was-run")); err == nil {
		t.Error("a command of the configuration was run")
	}
	clean := newPlace(t)
	if out, stderr, code := runProgram(t, clean, "", "config", "check"); code != 0 || out != "No problems.\n" {
		t.Errorf("clean: exit %d, %q %q", code, out, stderr)
	}
}

// A default model that has no effect is an error, with the name that was meant.
func TestConfigCheckNamesADefaultModelThatHasNoEffect(t *testing.T) {
	for model, want := range map[string]string{
		"m1":             "defaultModel: m1 does not name its provider: write provider/model; did you mean my_co/m1?",
		"gone":           "defaultModel: gone does not name its provider: write provider/model\n",
		"nope/m1":        `defaultModel: there is no provider "nope"`,
		"my_co/m2":       "defaultModel: provider my_co has no m2",
		"my_co/m1":       "",
		"demo/offline":   "",
		"openai/gpt-5.2": "note: defaultModel: openai/gpt-5.2 cannot be used: provider openai needs a key",
	} {
		here := newPlace(t, `ECA_CONFIG={"providers": {"my_co": {"api": "openai-chat", "url": "http://127.0.0.1:1/v1", "key": "k", "fetchModels": false, "models": {"m1": {}}}}, "defaultModel": "`+model+`"}`)
		out, errOut, code := runProgram(t, here, "", "config", "check")
		if (code == 0) != (want == "" || strings.HasPrefix(want, "note: ")) || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, want %q: %s%s", model, code, want, out, errOut)
		}
	}
}

// Each mistake is reported once, with its position.
func TestConfigCheckReportsEachMistakeOnceAtItsPlace(t *testing.T) {
	here := newPlace(t)
	here.env = append(here.env, `ECA_CONFIG={
  "toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["ok.*",
    "rm ("], "comand": ["x"]}}}}, "webFetch": {"allowHosts": ["a b"]}},
  "agent": {"code": {"toolCall": {"approval": {"allow": {"eca__grep": {"argsMatchers": {"pattern": [
    "["]}}}}}}},
  "providers": {"my_server2": {"api": "openai-chat", "url": "http://127.0.0.1:1", "models": {"m": {}}, "retryRules": [
    {"errorPattern": "("}]}},
  "variantsByModel": {
    "*(": {"variants": {}}},
  "hooks": {"a": {
    "type": "preToolcall", "actions": [{"type": "shell", "shell": "true"}]}, "b": {"type": "preToolCall", "actions": [
    {"type": "shell"}], 
    "matcher": "("}}
}`)
	out, errOut, code := runProgram(t, here, "", "config", "check", "--json")
	var report struct {
		Findings []struct {
			Line, Column int
			Message      string
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errOut)
	}
	lines := map[int]int{}
	for _, f := range report.Findings {
		if f.Line == 0 || f.Column == 0 {
			t.Errorf("without a place: %s", f.Message)
		}
		lines[f.Line]++
	}
	if want := map[int]int{3: 3, 5: 1, 7: 1, 9: 1, 11: 1, 13: 1}; !maps.Equal(lines, want) {
		t.Errorf("findings by line: %v, want %v: %s", lines, want, out)
	}
}
