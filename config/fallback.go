package config

import "strings"

// providerFallbacks fills providers' missing keys and URLs: from <PROVIDER>_API_KEY and
// <PROVIDER>_API_URL, from the netrc entry that keyRc names, and from the variables that
// keyEnv and urlEnv name (eca-features 5.2).
func (b *builder) providerFallbacks() {
	providers, _ := b.merged["providers"].(map[string]any)
	for name, v := range providers {
		p, ok := v.(map[string]any)
		if !ok {
			continue
		}
		prefix := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		for _, field := range []string{"key", "url"} {
			if s, _ := p[field].(string); s != "" {
				continue
			}
			at := []string{"providers", name, field}
			own, _ := p[field+"Env"].(string)
			switch {
			case b.fromVariable(p, at, prefix+"_API_"+strings.ToUpper(field)):
			case field == "key" && b.fromNetrc(p, name):
			case own != "":
				b.fromVariable(p, at, own)
			}
		}
	}
}

// fromVariable takes a provider's value from an environment variable.
func (b *builder) fromVariable(p map[string]any, at []string, variable string) bool {
	value := b.in.Getenv(variable)
	if value == "" {
		return false
	}
	p[at[2]] = value
	b.origins[join(at)] = Origin{Source: environmentSource + variable, fallback: true}
	return true
}

// fromNetrc takes a provider's key from the entry that keyRc names.
func (b *builder) fromNetrc(p map[string]any, name string) bool {
	entry, _ := p["keyRc"].(string)
	if entry == "" {
		return false
	}
	at := []string{"providers", name, "keyRc"}
	key, err := b.resolver(b.layerOf(at), true).password(entry)
	if err != nil {
		b.problemAt(at, "%s: %v", KeyPath(at), err)
	}
	if key == "" {
		return false
	}
	p["key"] = key
	b.origins[join([]string{"providers", name, "key"})] = Origin{Source: "netrc entry " + entry, fallback: true, included: secretMark + key}
	return true
}

// googlePreset keeps configurations of the reference working, which knows only Google's
// OpenAI-compatible API: somebody's own url without an api is such a one.
func (b *builder) googlePreset() {
	url, api := []string{"providers", "google", "url"}, join([]string{"providers", "google", "api"})
	own := !b.originOf(url).IsDefault() || b.in.Getenv("GOOGLE_API_URL") != ""
	providers, _ := b.merged["providers"].(map[string]any)
	if p, ok := providers["google"].(map[string]any); ok && own && b.origins[api].IsDefault() {
		p["api"] = "openai-chat"
		b.origins[api] = b.originOf(url)
	}
}
