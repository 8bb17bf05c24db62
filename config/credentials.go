package config

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/netrc"
)

// Prefixes of Origin.Source for values from sources that other programs also read.
const (
	environmentSource = "environment variable "
	netrcSource       = "netrc file "
)

// Variable returns the environment variable that provided the value because no other source did.
func (o Origin) Variable() (name string, ok bool) {
	return strings.CutPrefix(o.Source, environmentSource)
}

// Shared reports whether a value comes from a source that other programs also read: the environment
// or a netrc file.
func (o Origin) Shared() bool {
	_, variable := o.Variable()
	return variable || strings.HasPrefix(o.Source, netrcSource)
}

// fillCredentials fills providers' missing keys and URLs (eca-features.md 5.2): from
// <PROVIDER>_API_KEY and <PROVIDER>_API_URL, else from the netrc entry that keyRc names,
// else from the variables that keyEnv and urlEnv name.
func (b *builder) fillCredentials() {
	providers, _ := b.merged["providers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p, ok := providers[name].(map[string]any)
		if !ok {
			continue
		}
		keys, urls := providerVariables(name, cmp.Or(b.spellings[name], name))
		setting := func(field string) string {
			s, _ := p[field].(string)
			return s
		}
		for _, from := range []struct {
			field string
			find  func() (value, source string)
		}{
			{"key", b.variable(keys...)},
			{"key", func() (string, string) { return b.password(name, setting("keyRc")) }},
			{"key", b.variable(setting("keyEnv"))},
			{"url", b.variable(urls...)},
			{"url", b.variable(setting("urlEnv"))},
		} {
			if setting(from.field) != "" {
				continue
			}
			if value, source := from.find(); value != "" {
				p[from.field] = value
				b.origins[join([]string{"providers", name, from.field})] = Origin{Source: source}
			}
		}
		for field, key := range map[string]string{"key": "keyEnv", "url": "urlEnv"} {
			if variable := setting(key); variable != "" && setting(field) == "" {
				b.unset[join([]string{"providers", name, key})] = []string{variable}
			}
		}
	}
}

// variable returns a function that looks up environment variables; the first one that is set wins.
func (b *builder) variable(names ...string) func() (value, source string) {
	return func() (string, string) {
		for _, name := range names {
			if value := b.in.Getenv(name); name != "" && value != "" {
				return value, environmentSource + name
			}
		}
		return "", ""
	}
}

// password looks up a netrc entry. A missing entry is not a problem: the provider has no key then.
func (b *builder) password(provider, key string) (value, source string) {
	if key == "" {
		return "", ""
	}
	at := []string{"providers", provider, "keyRc"}
	paths := b.netrcFiles()
	for _, path := range paths {
		b.recordFile(path)
	}
	e, ok, err := netrc.FindKey(paths, key)
	if err != nil {
		b.problemAt(at, "%s: %v", strings.Join(spelledPath(b.spellings, at), "."), err)
	}
	if !ok {
		return "", ""
	}
	if e.Exposed {
		b.problemAt(at, "%s: other users can read %s; run: chmod 600 %s", strings.Join(spelledPath(b.spellings, at), "."), e.File, e.File)
	}
	return e.Password(), netrcSource + e.File
}

// netrcFiles lists the netrc files: netrcFile, otherwise the usual ones.
func (b *builder) netrcFiles() []string {
	home := b.in.Getenv("HOME")
	if h, err := os.UserHomeDir(); home == "" && err == nil {
		home = h
	}
	at := []string{"netrcFile"}
	name, _ := b.merged["netrcFile"].(string)
	if name == "" {
		return netrc.DefaultPaths(home)
	}
	l := b.layerOf(at)
	r := b.resolver(l, true)
	r.netrc = func() []string { return nil } // the path of the netrc file cannot depend on its content
	path := r.expand(name).text
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) && l != nil {
		path = filepath.Join(l.dir, path)
	}
	return []string{path}
}

// selectGoogleAPI selects Google's OpenAI-compatible API if the user configured a url for google but no
// api. The reference server supports only this API, so its users' configurations keep working.
func (b *builder) selectGoogleAPI() {
	url, api := []string{"providers", "google", "url"}, join([]string{"providers", "google", "api"})
	own := !b.originOf(url).IsDefault() || b.in.Getenv("GOOGLE_API_URL") != ""
	providers, _ := b.merged["providers"].(map[string]any)
	if p, ok := providers["google"].(map[string]any); ok && own && b.origins[api].IsDefault() {
		p["api"] = "openai-chat"
		b.origins[api] = b.originOf(url)
	}
}
