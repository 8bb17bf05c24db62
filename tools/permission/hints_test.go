package permission

import (
	"encoding/json"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// A server's hint makes a call ask if only byDefault allows it. A tool that has changed asks each
// time. Neither affects a rule that denies.
func TestHints(t *testing.T) {
	const open = `{"toolCall": {"approval": {"byDefault": "allow", "allow": {"named": {}, "db__drop": {}}, "deny": {"evil": {}}}}}`
	for _, c := range []struct {
		rules, tool      string
		changed, caution string
		want             tools.Decision
		rule             string
		insist           bool
	}{
		{open, "db__read", "", "", tools.Allow, "toolCall.approval.byDefault", false},
		{open, "db__write", "", "it may destroy", tools.Ask, "hint of the server", false},
		{open, "db__drop", "", "it may destroy", tools.Allow, "toolCall.approval.allow.db__drop", false},
		{open, "named__x", "", "it may destroy", tools.Allow, "toolCall.approval.allow.named", false},
		{open, "evil__x", "changed", "it may destroy", tools.Deny, "toolCall.approval.deny.evil", false},
		{open, "db__drop", "changed", "", tools.Ask, "changed tool", true},
		{`{}`, "db__write", "", "it may destroy", tools.Ask, "toolCall.approval.byDefault", false},
		{`{"toolCall": {"approval": {"byDefault": "deny"}}}`, "db__write", "", "it may destroy", tools.Deny, "toolCall.approval.byDefault", false},
	} {
		s := spec(c.tool)
		s.Changed, s.Caution = c.changed, c.caution
		v := policy(t, c.rules).Judge(tools.Call{Agent: "code", Arguments: json.RawMessage(`{}`)}, s, tools.Plan{})
		if v.Decision != c.want || v.Rule != c.rule || v.AlwaysAsk != c.insist {
			t.Errorf("%s %q %q: %+v", c.tool, c.changed, c.caution, v)
		}
	}
}
