package bounds

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// CallEnvironment returns the environment of what a call runs; nil means eca's own.
func (b *Bounds) CallEnvironment(cfg *config.Loaded, call tools.Call) []string {
	by := callAuthor(cfg, call)
	return b.environment(cfg.Config, by, b.levelFor(cfg.Config, call.Roots, by).Level)
}

// CustomEnvironment returns the environment of a custom tool.
func (b *Bounds) CustomEnvironment(cfg *config.Loaded, name string, call tools.Call) []string {
	by := b.customAuthor(cfg, name, call)
	return b.environment(cfg.Config, by, b.levelFor(cfg.Config, call.Roots, by).Level)
}

// environment returns the environment of a child: nil, which means eca's own, if the user approved
// the call; otherwise eca's own without credentials; and at the read-only level only the variables
// that reading programs need (docs/sandbox.md).
func (b *Bounds) environment(cfg *config.Config, by author, level sandbox.Level) []string {
	if by == byHand {
		return nil
	}
	all, rules := b.opts.Environ(), cfg.ToolCall.Environment
	if all == nil {
		all = os.Environ()
	}
	out := []string{}
	for _, pair := range all {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case matchesName(rules.Withhold, name):
		case matchesName(rules.Pass, name):
			out = append(out, pair)
		case level == sandbox.ReadOnly:
			if matchesName(readOnlyVariables(), name) {
				out = append(out, pair)
			}
		case !b.isCredential(name, value):
			out = append(out, pair)
		}
	}
	if level == sandbox.ReadOnly {
		out = append(out, "TERM=dumb")
	}
	return out
}

// readOnlyVariables names the variables of a command that only reads.
func readOnlyVariables() []string {
	return []string{
		"HOME", "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "USER", "LOGNAME", "TMPDIR", "PWD", "XDG_CONFIG_HOME",
		"SYSTEMROOT", "PATHEXT", "COMSPEC", "USERPROFILE", "TEMP", "TMP", // Windows
	}
}

// isCredential reports whether a variable is a credential, or looks like one. Proxy addresses are
// never treated as credentials, even if they contain some: without them the network cannot be
// reached.
func (b *Bounds) isCredential(name, value string) bool {
	upper := strings.ToUpper(name)
	if strings.HasSuffix(upper, "_PROXY") {
		return false
	}
	if redact.SecretName(name) || b.opts.IsCredential(value) {
		return true
	}
	parts := strings.Split(upper, "_")
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains([]string{"KEY", "PAT", "PASS", "APIKEY"}, part) }) ||
		len(parts) > 1 && slices.Contains([]string{"AUTH", "PWD", "PW"}, parts[len(parts)-1])
}

// matchesName reports whether a variable matches one of the listed patterns, in which * stands for
// any text.
func matchesName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		ok, err := path.Match(strings.ToUpper(pattern), strings.ToUpper(name))
		return ok && err == nil
	})
}
