package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

// starter notes what it is asked for.
type starter struct{ got tools.SubagentRequest }

func (s *starter) Plan(r tools.SubagentRequest) (event.Subagent, error) {
	s.got = r
	return event.Subagent{ChatID: "subagent-x", Agent: r.Agent, Model: "a/m"}, nil
}

func (s *starter) Run(_ context.Context, r tools.SubagentRequest) (tools.Result, error) {
	s.got = r
	return tools.Text("done"), nil
}

func TestSpawnAgent(t *testing.T) {
	if len(Tools(Options{})) > 0 {
		t.Error("Tools returned a tool although there are no agents")
	}
	tool := Tools(Options{
		All: []Agent{{Name: "one", Description: "Looks\naround."}, {Name: "two"}},
		For: func(agent string) []Agent { return map[string][]Agent{"code": {{Name: "two"}}}[agent] },
	})[0]
	spec := tool.Spec()
	if !strings.HasSuffix(spec.Description, "Agents:\n- one: Looks around.\n- two") || !spec.PrimaryOnly || !spec.ReadOnly {
		t.Errorf("%+v", spec)
	}
	if text, ok := spec.For("code"); !ok || !strings.HasSuffix(text, "Agents:\n- two") {
		t.Errorf("for code: %v %q", ok, text)
	}
	if _, ok := spec.For("other"); ok {
		t.Error("an agent without subagents has the tool")
	}
	for args, want := range map[string]string{
		`{"agent": "one", "task": "look around here\nand there", "background": null}`:                                 "one: look around here and there",
		`{"agent": "one", "task": "t", "activity": " looking \n at it ", "resume": "subagent-y", "background": true}`: "one: looking at it",
		`{"agent": "one", "task": "` + strings.Repeat("é", 50) + `", "model": "m", "variant": "v"}`:                   "one: " + strings.Repeat("é", 40) + "…",
	} {
		s := &starter{}
		call := tools.Call{Arguments: json.RawMessage(args), Subagents: s}
		plan, err := tool.Plan(t.Context(), call)
		if err != nil || plan.Summary != want || plan.Details.Subagent.ChatID != "subagent-x" {
			t.Errorf("%s: %+v, %v", args, plan, err)
		}
		planned := s.got
		if res, err := tool.Run(t.Context(), call, nil); err != nil || res.Outputs[0] != "done" || s.got != planned {
			t.Errorf("%s: %+v, %v", args, res, err)
		}
	}
	for _, args := range []string{`{"agent": "one"}`, `{"task": "t"}`, `{"agent": 1, "task": "t"}`} {
		if _, err := tool.Plan(t.Context(), tools.Call{Arguments: json.RawMessage(args), Subagents: &starter{}}); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	if _, err := tool.Plan(t.Context(), tools.Call{Arguments: json.RawMessage(`{"agent": "one", "task": "t"}`)}); err == nil {
		t.Error("the tool accepts a call in a chat that cannot start subagents")
	}
}
