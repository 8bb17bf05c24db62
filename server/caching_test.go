package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// With a cacheRetention, each API gets its own request to keep prompts, and written tokens have the
// right price: one hour in a Claude cache costs twice the input, five minutes cost the listed
// price.
func TestCacheRetention(t *testing.T) {
	needs.Long(t)
	const model = `cassette: 1
turns:
  - steps: [{text: hello, usage: {input: 100, output: 10, cacheRead: 1000, cacheWrite: 2400, cacheWriteLong: 2400}}]
  - steps: [{text: bye, usage: {input: 100, output: 10, cacheRead: 3000, cacheWrite: 600, cacheWriteLong: 600}}]
`
	for _, c := range []struct {
		api, model, retention string
		says                  string // how often the last request says what
		cost                  string // of the session, in dollars
	}{
		// 200 in at 3, 20 out at 15, 4000 read at 0.3, 3000 written at 3.75 or 6 dollars a million,
		// all times 1000 so that the result is visible in cents.
		{"anthropic", "claude-sonnet-4-6", "", `"cache_control":{"type":"ephemeral"}=4`, "20.10"},
		{"anthropic", "claude-sonnet-4-6", "short", `"cache_control":{"type":"ephemeral"}=4`, "20.10"},
		{"anthropic", "claude-sonnet-4-6", "long", `"cache_control":{"type":"ephemeral","ttl":"1h"}=4`, "20.10"},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "long", `"cachePoint":{"type":"default","ttl":"1h"}=4`, "20.10"},
		{"bedrock", "anthropic.claude-3-7-sonnet-20250219-v1:0", "long", `"cachePoint":{"type":"default"}=4`, "20.10"},
		{"openai-chat", "anthropic/claude-x", "long", `"cache_control":{"type":"ephemeral","ttl":"1h"}=3`, "20.10"},
		{"openai-chat", "anthropic/claude-x", "short", `"cache_control":{"type":"ephemeral"}=3`, "13.35"},
		{"openai-chat", "anthropic/claude-x", "", `cache_control=0`, "13.35"},
		{"openai-responses", "gpt-5.2", "long", `"prompt_cache_retention":"24h"=1`, "13.35"},
		{"openai-responses", "gpt-5.2", "short", `prompt_cache_retention=0`, "13.35"},
		{"openai-responses", "gpt-5-mini", "long", `prompt_cache_retention=0`, "13.35"},
	} {
		t.Run(c.api+" "+c.model+" "+c.retention, func(t *testing.T) {
			r := newRig(t, options{model: model, api: c.api, config: map[string]any{"providers": map[string]any{"mock": map[string]any{
				"cacheRetention": c.retention,
				"models": map[string]any{"m": map[string]any{
					"modelName": c.model, "limit": map[string]any{"context": 200000, "output": 8000},
					"cost": map[string]any{"input": 3000, "output": 15000, "cacheRead": 300, "cacheWrite": 3750},
				}},
			}}}})
			r.Await(0, "the start", fake.Ready())
			for i, text := range []string{"hi", "and?"} {
				mark := r.Mark()
				r.Call("chat/prompt", map[string]any{"chatId": "one", "message": text})
				r.Await(mark, fmt.Sprint("turn ", i), fake.Content("progress", `"finished"`))
			}
			what, times, _ := strings.Cut(c.says, "=")
			body := string(r.requests[len(r.requests)-1].body)
			if got := fmt.Sprint(strings.Count(body, what)); got != times {
				t.Errorf("%s times %s in %s", got, what, body)
			}
			want, usage := `"sessionCost":"`+c.cost+`"`, ""
			for _, m := range r.Since(0) {
				if strings.Contains(m.String(), `"type":"usage"`) {
					usage = m.String()
				}
			}
			if !strings.Contains(usage, want) {
				t.Errorf("no %s in %s", want, usage)
			}
		})
	}
}
