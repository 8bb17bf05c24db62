package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// A turn that asks no model is no switch: the one behind it still is, and is noted.
func TestModelChange(t *testing.T) {
	var c modelChange
	turn := func(model string, m event.UserMessage) string {
		c.add(m)
		c.add(event.TurnStarted{Model: model})
		return c.before + ">" + c.now
	}
	for i, s := range []struct {
		model   string
		message event.UserMessage
		want    string
	}{
		{"a", event.UserMessage{}, ">a"},
		{"b", event.UserMessage{Command: true}, ">a"}, // /compact with another model
		{"b", event.UserMessage{Command: true, Prompt: "write AGENTS.md"}, "a>b"},
		{"b", event.UserMessage{}, "b>b"},
		{"a", event.UserMessage{}, "b>a"},
	} {
		if got := turn(s.model, s.message); got != s.want {
			t.Errorf("turn %d: %s, not %s", i+1, got, s.want)
		}
	}
}

func TestWithheld(t *testing.T) {
	history := []llm.Message{
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "look"}, llm.Image{}}},
		{Role: llm.Assistant, Parts: []llm.Part{llm.Reasoning{API: "x"}, llm.Reasoning{}, llm.ToolCall{ID: "c"}}},
		{Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "c", Images: []llm.Image{{}, {}}}}},
	}
	reads := func(which string) func(string) bool { return func(api string) bool { return api == which } }
	for _, c := range []struct {
		model Model
		want  string
	}{
		{Model{}, ""}, // nobody knows
		{Model{Reads: reads("x")}, ""},
		{Model{Reads: reads("y")}, "is not sent the reasoning of the models before it, which only they can read"},
		{Model{Reads: reads("x"), NoImages: true}, "can not see the 3 images in it"},
	} {
		if got := c.model.withheld(history); got != c.want {
			t.Errorf("%q", got)
		}
	}
	if got := (Model{Reads: reads("y")}).withheld(history[:1]); got != "" {
		t.Errorf("nothing is lost: %q", got)
	}
}
