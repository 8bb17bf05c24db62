package config

import (
	"strings"
	"testing"
)

// A user who gets another agent than requested learns its rights, and whether it has more of them.
func TestSubstitutionNamesRights(t *testing.T) {
	l := Load(Inputs{Getenv: env(map[string]string{"ECA_CONFIG": `{"agent": {
		"free": {"toolCall": {"approval": {"byDefault": "allow"}}},
		"strict": {"toolCall": {"approval": {"byDefault": "deny"}}},
		"helper": {"mode": "subagent", "disabledTools": ["shell_command"]}
	}}`})})
	only, asks := RightsReadOnly, RightsAsk
	for _, c := range []struct {
		asked, used string
		before      *Rights
		want, not   string
	}{
		{"gone", "code", nil, "asks first", "more rights"},
		{"gone", "plan", nil, `"plan", which can only read.`, "more rights"},
		{"gone", "free", nil, "without asking", "more rights"},
		{"gone", "strict", nil, "can only do what the configuration allows", "more rights"},
		{"gone", "code", &only, `This agent has more rights: "gone" can only read.`, "cannot use"},
		{"gone", "plan", &only, "can only read", "more rights"},
		{"gone", "free", &asks, `This agent has more rights: "gone" can change files and run commands, and asks first`, "cannot use"},
		{"gone", "plan", &asks, "can only read", "more rights"},
		{"explorer", "code", nil, `This agent has more rights: "explorer" can only read.`, "cannot use"},
		{"helper", "code", nil, `This agent has more rights: "helper" cannot use shell_command.`, "explorer"},
		{"helper", "plan", nil, "can only read", "more rights"},
	} {
		got := l.Substitution(c.asked, c.used, c.before)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s for %s: %s", c.used, c.asked, got)
		}
	}
}
