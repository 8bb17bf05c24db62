package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Values of a fragment override the defaults, values of the user override those of a fragment, and
// the origin of a value is its line in the fragment.
func TestFragments(t *testing.T) {
	home := t.TempDir()
	global := `{"agent": {"reviewer": {"description": "from JSON"}, "plan": {"maxSteps": 3}}}`
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(global), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "agents", "reviewer.md")
	content := map[string]any{"description": "from Markdown", "systemPrompt": "I am ${env:WHO}.", "maxSteps": 7.0, "variant": 1.0}
	in := Inputs{
		ConfigHome: home,
		Getenv:     func(name string) string { return map[string]string{"WHO": "a ${env:TRAP}", "TRAP": "no"}[name] },
		Fragments: []Fragment{
			{Source: file, Path: []string{"agent", "reviewer"}, Content: content, Lines: map[string]int{"maxSteps": 4, "variant": 5}},
			{Source: "plan.md", Path: []string{"agent", "plan"}, Content: map[string]any{"mode": []any{"subagent"}, "maxSteps": 9.0}},
		},
	}
	l := Load(in)
	a := l.Agents["reviewer"]
	if a.Description != "from JSON" || a.SystemPrompt != "I am a ${env:TRAP}." || a.MaxSteps == nil || *a.MaxSteps != 7 {
		t.Errorf("%+v", a)
	}
	if p := l.Agents["plan"]; p.Primary() || *p.MaxSteps != 3 || p.Prompts.Chat == "" {
		t.Errorf("%+v", p)
	}
	if o, _ := l.Origin("agent", "reviewer", "maxSteps"); o.String() != file+":4" {
		t.Error(o)
	}
	if len(l.Problems) != 1 || l.Problems[0].Origin.String() != file+":5" {
		t.Errorf("%v", l.Problems)
	}
	if content["systemPrompt"] != "I am ${env:WHO}." {
		t.Error("the fragment was changed")
	}
}

func TestInherit(t *testing.T) {
	load := func(agents string) *Loaded {
		return Load(Inputs{Getenv: func(string) string { return "" }, InitOptions: json.RawMessage(`{"agent": ` + agents + `}`)})
	}
	l := load(`{
		"base": {"mode": "primary", "description": "the base", "disabledTools": ["git"], "maxSteps": 5,
			"toolCall": {"approval": {"byDefault": "deny", "allow": {"read_file": {}, "grep": {}}}}},
		"child": {"inherit": "base", "description": "a child", "disabledTools": ["task"],
			"toolCall": {"approval": {"allow": {"write_file": {}}}}},
		"grandchild": {"inherit": "child", "maxSteps": 1},
		"a": {"inherit": "b"}, "b": {"inherit": "a"}, "self": {"inherit": "self"}, "lost": {"inherit": "nobody"}
	}`)
	for name, want := range map[string]string{"child": "a child", "grandchild": "a child", "base": "the base"} {
		a := l.Agents[name]
		approval := a.ToolCall.Approval
		_, reads := approval.Allow["grep"]
		_, writes := approval.Allow["write_file"]
		if a.Description != want || approval.ByDefault != "deny" || !reads || writes != (name != "base") || !a.Primary() || a.Subagent() {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if got := l.Agents["child"].DisabledTools; len(got) != 1 || got[0] != "task" {
		t.Errorf("lists are replaced, not joined: %v", got)
	}
	if *l.Agents["grandchild"].MaxSteps != 1 || *l.Agents["child"].MaxSteps != 5 {
		t.Error("maxSteps")
	}
	if o, ok := l.Origin("agent", "child", "maxSteps"); !ok || o.Source != "initializationOptions" {
		t.Errorf("an inherited value without an origin: %v", o)
	}
	var causes []string
	for _, p := range l.Problems {
		causes = append(causes, p.Cause)
	}
	all := strings.Join(causes, "\n")
	if len(causes) != 3 || !strings.Contains(all, "agent.self.inherit: self inherits from itself") || !strings.Contains(all, "there is no agent nobody") {
		t.Error(all)
	}
}
