package daemon

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// While the configuration repeatedly adds and removes a tool and the rule that denies it, no reader gets
// the tool without the rule.
func TestToolAndItsRuleChangeTogether(t *testing.T) {
	needs.Long(t)
	const with = `{
		"customTools": {"wipe": {"description": "Wipes.", "command": "true", "schema": {"properties": {}}}},
		"toolCall": {"approval": {"deny": {"wipe": {}}}}
	}`
	d := newDaemon(t, with, nil)
	var over atomic.Bool
	var readers sync.WaitGroup
	var seen, bare atomic.Int64
	check := func(offered, denied bool) {
		if offered {
			seen.Add(1)
			if !denied {
				bare.Add(1)
			}
		}
	}
	readers.Go(func() { // as a turn does
		for !over.Load() {
			s := d.chatSnapshot()
			if tool, ok := s.Tools().Lookup(tools.FullName(tools.Native, "wipe")); ok {
				verdict := s.Policy.Judge(tools.Call{Agent: "code", Arguments: json.RawMessage("{}")}, tool.Spec(), tools.Plan{})
				check(true, verdict.Decision == tools.Deny)
			}
		}
	})
	readers.Go(func() { // as a client's list of tools
		for !over.Load() {
			for _, c := range d.ToolChoices("code") {
				check(c.Name == "wipe", c.Disabled)
			}
		}
	})
	const changes = 50
	for range changes {
		d.Configure(json.RawMessage(`{}`), nil)
		d.Configure(json.RawMessage(with), nil)
	}
	for before := seen.Load(); seen.Load() < before+changes; {
		d.Roots()
	}
	over.Store(true)
	readers.Wait()
	if n := bare.Load(); n > 0 {
		t.Errorf("the tool was seen %d times without the rule that denies it, of %d", n, seen.Load())
	}
}
