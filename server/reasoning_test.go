package server_test

import (
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// reasoningHistory decides which reasoning is sent back to a model: all, only that since the user's
// last message, or none.
func TestReasoningHistory(t *testing.T) {
	needs.Long(t)
	const tape = `
cassette: 1
turns:
  - steps: [{reasoning: Early thoughts., text: one}]
  - steps:
      - {reasoning: Late thoughts., calls: [{id: c, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]}
      - {text: two}
`
	for mode, want := range map[string]string{"": "early late", "all": "early late", "turn": "late", "off": ""} {
		// Claude's signed thinking and other models' plain reasoning text are dropped in the same
		// way.
		for api, model := range map[string]string{"anthropic": "claude-sonnet-4-6", "openai-chat": "m", "ollama": "m"} {
			t.Run(api+" "+mode, func(t *testing.T) {
				r := newRig(t, options{model: tape, api: api, config: map[string]any{"providers": map[string]any{"mock": map[string]any{
					"models": map[string]any{"m": map[string]any{"modelName": model, "reasoningHistory": mode, "reason": true, "limit": map[string]any{"context": 200_000, "output": 8000}}},
				}}}})
				r.Await(0, "the start", fake.Ready())
				r.turn(t, map[string]any{"chatId": "c", "message": "first"})
				r.turn(t, map[string]any{"chatId": "c", "message": "second"})
				bodies := r.bodies()
				last := bodies[len(bodies)-1]
				var got []string
				for _, when := range []string{"Early", "Late"} {
					if strings.Contains(last, when+" thoughts.") {
						got = append(got, strings.ToLower(when))
					}
				}
				if g := strings.Join(got, " "); g != want {
					t.Errorf("it is sent %q, not %q: %s", g, want, last)
				}
				if err := validRequest(api, last); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
