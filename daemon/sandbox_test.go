package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// The limits of a call depend on who or what allowed it.
func TestBounds(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	file := filepath.Join(root, ".eca", "config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"toolCall": {"approval": {"allow": {"theirs": {}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	none, read := sandbox.Policy{}, sandbox.Policy{Level: sandbox.ReadOnly}
	write, net := sandbox.Policy{Level: sandbox.Workspace}, sandbox.Policy{Level: sandbox.Workspace, Network: true}
	must, mustRead := sandbox.Policy{Level: sandbox.Workspace, Required: true}, sandbox.Policy{Level: sandbox.ReadOnly, Required: true}
	for _, c := range []struct {
		mode                                         string
		ours, reads, stays, mine, theirs, auto, hand sandbox.Policy
	}{
		{`"auto"`, read, read, must, net, write, net, none},
		{`"off"`, none, none, none, none, none, none, none},
		{`"on"`, write, read, must, write, write, write, write},
		{`"on", "sandboxNetwork": true`, net, read, must, net, net, net, net},
		{`"required"`, must, mustRead, must, must, must, must, must},
		{`"nonsense"`, read, read, must, net, write, net, none},
	} {
		d := New(Options{Getenv: func(string) string { return "" }, StateDir: state, CacheDir: t.TempDir()})
		options := `{"toolCall": {"sandbox": ` + c.mode + `, "approval": {"allow": {"a.b": {}}}}, "agent": {"my.agent": {"toolCall": {"approval": {"byDefault": "allow"}}}}}`
		d.Configure(json.RawMessage(options), []string{root})
		if err := d.Trust(d.Untrusted()); err != nil {
			t.Fatal(err)
		}
		for what, check := range map[string]struct {
			authorization tools.Authorization
			want          sandbox.Policy
		}{
			"a built-in rule":         {tools.Authorization{Rule: "toolCall.approval.allow.eca__read_file"}, c.ours},
			"no rule":                 {tools.Authorization{}, c.ours},
			"a read-only agent":       {tools.Authorization{Rule: "agent.plan.readOnly"}, c.ours},
			"a command that reads":    {tools.Authorization{Rule: "sandbox.reads"}, c.reads},
			"a command that stays":    {tools.Authorization{Rule: tools.RuleWorkspace}, c.stays},
			"a built-in default":      {tools.Authorization{Rule: "toolCall.approval.byDefault"}, c.ours},
			"the user's rule":         {tools.Authorization{Rule: "toolCall.approval.allow.a.b"}, c.mine},
			"the user's agent":        {tools.Authorization{Rule: "agent.my.agent.toolCall.approval.byDefault"}, c.mine},
			"the workspace's rule":    {tools.Authorization{Rule: "toolCall.approval.allow.theirs"}, c.theirs},
			"auto-approve":            {tools.Authorization{Rule: "toolCall.approval.byDefault", Auto: true}, c.auto},
			"the user's word":         {tools.Authorization{Rule: "toolCall.approval.byDefault", Approved: true}, c.hand},
			"the user's earlier word": {tools.Authorization{Rule: "remembered.session"}, c.auto},
		} {
			got := d.bounds.Call(d.Config(), tools.Call{Roots: []string{root}, Authorization: check.authorization})
			if got.Level != check.want.Level || got.Network != check.want.Network || got.Required != check.want.Required {
				t.Errorf("%s: %s: %+v, want %+v", c.mode, what, got, check.want)
			}
			if want := got.Network && what != "auto-approve"; got.UnixSockets != want {
				t.Errorf("%s: %s: Unix sockets: %v, want %v", c.mode, what, got.UnixSockets, want)
			}
		}
		for authorization, want := range map[tools.Authorization]sandbox.Policy{{Auto: true}: c.mine, {Approved: true}: c.hand, {Rule: "sandbox.reads"}: c.reads, {Rule: "toolCall.approval.allow.theirs"}: c.theirs} {
			if got := d.bounds.Custom(d.Config(), "mine", tools.Call{Roots: []string{root}, Authorization: authorization}); got.Level != want.Level || got.Network != want.Network {
				t.Errorf("%s: custom tool with %+v: %+v, want %+v", c.mode, authorization, got, want)
			}
		}
		// The user wrote them, or read and trusted them.
		if got := d.bounds.Hook(d.Config().Config, []string{root}); got.Level != c.hand.Level || got.Network != c.hand.Network || got.Required != c.hand.Required {
			t.Errorf("%s: hooks: %+v, want %+v", c.mode, got, c.hand)
		}
		d.Close()
	}
}
