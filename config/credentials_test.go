package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The sources of a provider's key, in the order in which they are tried.
func TestKeySources(t *testing.T) {
	home := t.TempDir()
	rc := filepath.Join(home, ".netrc")
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(rc, "machine acme.example login me password from-netrc\n", 0o600)
	other := filepath.Join(home, "other")
	write(other, "machine acme.example password from-another\n", 0o644)
	for name, c := range map[string]struct {
		provider, top string
		env           map[string]string
		key, source   string
		problem       string
	}{
		"config":       {provider: `"key": "k", "keyRc": "acme.example"`, key: "k", source: "ECA_CONFIG"},
		"environment":  {provider: `"keyRc": "acme.example"`, env: map[string]string{"ACME_API_KEY": "e"}, key: "e", source: "environment variable ACME_API_KEY"},
		"netrc":        {provider: `"keyRc": "me@acme.example", "keyEnv": "X"`, env: map[string]string{"X": "x"}, key: "from-netrc", source: "netrc file " + rc},
		"other login":  {provider: `"keyRc": "you@acme.example", "keyEnv": "X"`, env: map[string]string{"X": "x"}, key: "x", source: "environment variable X"},
		"no entry":     {provider: `"keyRc": "elsewhere.example"`},
		"bad key":      {provider: `"keyRc": "@"`, problem: "providers.acme.keyRc"},
		"no file":      {provider: `"keyRc": "acme.example"`, top: `"netrcFile": "/no/such/file"`},
		"netrcFile":    {provider: `"keyRc": "acme.example"`, top: `"netrcFile": "~/other"`, key: "from-another", source: "netrc file " + other, problem: "chmod 600"},
		"empty keyEnv": {provider: `"keyEnv": "X"`},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"HOME": home, "ECA_CONFIG": `{"providers": {"acme": {` + c.provider + `}}` + comma(c.top) + `}`}
			for k, v := range c.env {
				env[k] = v
			}
			l := Load(Inputs{Getenv: func(k string) string { return env[k] }})
			origin, _ := l.Origin("providers", "acme", "key")
			if got := l.Providers["acme"].Key; got != c.key || c.key != "" && !strings.HasPrefix(origin.String(), c.source) {
				t.Errorf("%q from %s", got, origin)
			}
			if shared := c.source != "" && c.source != "ECA_CONFIG"; origin.Shared() != shared {
				t.Errorf("shared: %v", origin.Shared())
			}
			expected := c.problem != "" && (c.problem != "chmod 600" || runtime.GOOS != "windows")
			if found := slices.ContainsFunc(l.Problems, func(p Problem) bool { return strings.Contains(p.Cause, c.problem) }); expected != (found && len(l.Problems) == 1) {
				t.Errorf("problems: %v", l.Problems)
			}
			if c.key != "" && !slices.Contains(l.Secrets(), c.key) {
				t.Error("the key is no secret")
			}
			if strings.Contains(name, "netrc") && !slices.ContainsFunc(l.Files, func(f string) bool { return strings.HasPrefix(f, home) }) {
				t.Errorf("the file is not watched: %v", l.Files)
			}
		})
	}
	l := Load(Inputs{Getenv: func(k string) string {
		return map[string]string{"ECA_CONFIG": `{"providers": {"acme": {"urlEnv": "U", "auth": {"clientSecret": "hidden", "scopes": "a", "tokenUrl": "https://acme.example/token"}}}}`, "U": "https://acme.example"}[k]
	}})
	p := l.Providers["acme"]
	if p.URL != "https://acme.example" || !slices.Equal(p.Auth.Scopes, []string{"a"}) || !slices.Equal(l.Secrets(), []string{"hidden"}) {
		t.Errorf("%+v, secrets %v", p, l.Secrets())
	}
}

func comma(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}
