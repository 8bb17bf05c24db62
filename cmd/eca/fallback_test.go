package main

import (
	"strings"
	"testing"
)

// Each fallback model that cannot help is reported once, at its place, with a remedy.
func TestConfigCheckReportsFallbackModels(t *testing.T) {
	const config = `ECA_CONFIG={"fallbackModels": [
  "my_own/nope",
  "nobody/x",
  " "], "providers": {"my_own": {"api": "openai-chat", "url": "http://127.0.0.1:1", "fetchModels": false, "models": {
    "m": {"fallbackModels": ["my_own/n"]}, "n": {"fallbackModels": ["my_own/m"]},
    "self": {"fallbackModels": ["my_own/self"]},
    "twice": {"fallbackModels": ["my_own/m", "my_own/m"]}}}}}`
	here := newPlace(t)
	here.env = append(here.env, config)
	out, stderr, code := runProgram(t, here, "", "config", "check")
	if code != 1 || strings.Count(out, "\n") != 5 {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	for _, want := range []string{
		`ECA_CONFIG:2:3: error: fallbackModels: provider my_own has no nope`,
		`ECA_CONFIG:3:3: error: fallbackModels: there is no provider "nobody"`,
		`ECA_CONFIG:4:3: error: fallbackModels: entry 3 is empty; correct or remove this entry, which is ignored`,
		`ECA_CONFIG:6:33: error: providers.my_own.models.self.fallbackModels: my_own/self is its own fallback`,
		`ECA_CONFIG:7:46: error: providers.my_own.models.twice.fallbackModels: my_own/m is named twice`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

// A fallback model whose provider does not exist is ignored, as config check says. Messages spell
// the models as the configuration does.
func TestExecIgnoresAFallbackOfNoProvider(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false}, "defaultModel": "my_gpu1/m", "fallbackModels": ["nobody/x", "openai/gpt-5.2"],
  "providers": {"my_gpu1": {"api": "openai-chat", "url": "http://127.0.0.1:1"}}}`)
	out, stderr, code := runProgram(t, here, "", "exec", "hi")
	if code != 0 || out != "fine\n" || strings.Contains(stderr, "my_gpu1/nobody/x") {
		t.Errorf("exit %d, %q: %s", code, out, stderr)
	}
	for _, want := range []string{"my_gpu1/m cannot be used: ", "A fallback model is skipped: ", "no provider nobody", "openai/gpt-5.2 continues this turn; the next prompt asks my_gpu1/m first."} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not said: %s", want, stderr)
		}
	}
}
