package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/llm"
)

func TestDescribeWithheld(t *testing.T) {
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
		{Model{}, ""}, // unknown
		{Model{ReadsReasoning: reads("x")}, ""},
		{Model{ReadsReasoning: reads("y")}, "is not sent the reasoning of the models before it, which only they can read"},
		{Model{ReadsReasoning: reads("x"), NoImages: true}, "cannot see the 3 images in it"},
	} {
		if got := c.model.describeWithheld(history); got != c.want {
			t.Errorf("%q", got)
		}
	}
	if got := (Model{ReadsReasoning: reads("y")}).describeWithheld(history[:1]); got != "" {
		t.Errorf("nothing is lost: %q", got)
	}
}
