package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every value that is set is listed once with its origin, and with whether and why it is secret.
func TestValues(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "key"), "from-a-file")
	write(t, filepath.Join(home, "prompt.md"), "Be brief and kind to all")
	write(t, filepath.Join(home, "config.json"), `{
		"providers": {
			"env": {"api": "openai-chat", "url": "${env:NOWHERE:https://fallback}", "key": "literal-key", "extraHeaders": {"X-A": "Bearer in-header"}},
			"token-inc": {"url": "https://u:in-url@host", "models": {"m": {"extraPayload": {"secrets": {"a": "in-payload"}, "max_tokens": 5, "tags": ["${env:PART}${env:OTHER}"]}}}},
			"file": {"key": "x ${file:key} y", "url": "${env:ADDRESS}"}
		},
		"toolCall": {"approval": {"allow": {"eca__grep": {}}}},
		"prompts": {"chat": "${file:prompt.md}"},
		"welcomeMessage": "at ${env:HOME}"
	}`)
	l := Load(Inputs{ConfigHome: home, Getenv: env(map[string]string{
		"PART": "in-", "OTHER": "part", "FILE_API_KEY": "unused-one", "TOKEN_INC_API_KEY": "from-environment", "ADDRESS": "https://address", "HOME": "/home/somebody",
	})})
	secret, shown := map[string]bool{}, map[string]bool{}
	for _, v := range l.Values() {
		path := strings.Join(v.Path, ".")
		if secret[path] || shown[path] || v.Origin.Source == "" {
			t.Errorf("%s: twice, or without origin", path)
		}
		secret[path], shown[path] = v.Secret, !v.Secret
	}
	for _, path := range []string{
		"providers.env.key", "providers.env.extraHeaders.X-A", "providers.token-inc.key", "providers.token-inc.models.m.extraPayload.secrets.a",
		"providers.token-inc.models.m.extraPayload.tags", "providers.file.key", "providers.file.url", "prompts.chat", "welcomeMessage",
	} {
		if !secret[path] {
			t.Errorf("%s is not secret", path)
		}
	}
	for _, path := range []string{
		"providers.env.api", "providers.env.url", "providers.token-inc.url", "providers.token-inc.models.m.extraPayload.max_tokens",
		"toolCall.approval.allow.eca__grep", "chat.title", "prompts.chatTitle", "agent.plan.mode",
	} {
		if !shown[path] {
			t.Errorf("%s is not shown", path)
		}
	}
	want := []string{"Bearer in-header", "from-a-file", "from-environment", "in-header", "in-part", "in-payload", "in-url", "literal-key", "x from-a-file y"}
	if got := l.Secrets(); !slices.Equal(got, want) {
		t.Errorf("secrets: %q", got)
	}
}
