package settings

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Secrets lists the secrets in the configuration and in the variables that eca reads.
func Secrets(cfg *config.Loaded, getenv func(string) string) []string {
	out := cfg.Secrets()
	for _, name := range Variables(cfg) {
		if redact.SecretName(name) {
			out = append(out, getenv(name))
		}
	}
	return out
}

// EnvironmentSecrets lists the values of environment variables whose names indicate a secret, and
// passwords in URLs.
func EnvironmentSecrets(environ []string) []string {
	var out []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if redact.SecretName(name) {
			out = append(out, value)
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				out = append(out, password)
			}
		}
	}
	return out
}

// LoginSecrets lists the secrets of logins.
func LoginSecrets(entered map[string]auth.Credential) []string {
	var out []string
	for _, c := range entered {
		out = append(out, c.Secrets()...)
	}
	return out
}

// Variables lists the environment variables that eca reads.
func Variables(cfg *config.Loaded) []string {
	names := []string{
		"ECA_CONFIG", "HOME", "SHELL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "ECA_CLIENT_CERT", "ECA_CLIENT_KEY", "ECA_CLIENT_KEY_PASSPHRASE",
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		keys, urls := cfg.Variables(name)
		names = append(append(names, keys...), urls...)
	}
	return names
}
