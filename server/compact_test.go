package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

const question = "Summarize this conversation"

// summaries counts the requests for a summary, and how many of them went to a model.
func (r *rig) summaries(model string) (all, by int) {
	for _, body := range r.bodies() {
		if strings.Contains(body, question) {
			all++
			if strings.Contains(body, `"model":"`+model+`"`) {
				by++
			}
		}
	}
	return all, by
}

// A turn with a single prompt compacts whenever its context is full.
func TestSinglePromptCompactsRepeatedly(t *testing.T) {
	t.Parallel()
	tape := strings.Builder{}
	tape.WriteString("cassette: 1\nturns:\n  - {user: '" + question + "', steps: [{text: S}]}\n  - user: '^go$|Go on'\n    steps:\n")
	// Each round fills the context: 400, then 800 tokens of 1000.
	for i := range 2 {
		fmt.Fprintf(&tape, "      - {calls: [{tool: eca__directory_tree, arguments: {path: \"${workspace}\"}}], usage: {input: %d, output: 0}}\n", 400*(i+1))
	}
	r := newRig(t, options{model: tape.String()})
	r.Await(0, "the start", fake.Ready())
	r.Begin("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "three compactions", fake.Times(3, "chat/contentReceived", "Chat auto-compacted"))
	r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	r.Await(0, "the end", fake.Content("progress", `"finished"`))
}

// If a summary does not help, because instructions and tools alone fill the context, it is not
// requested again and again, but only after the conversation has grown.
func TestUselessSummaryIsNotRepeated(t *testing.T) {
	t.Parallel()
	used := []int{800, 780, 800, 850, 870, 880, 790}
	tape := "cassette: 1\nturns:\n  - {user: '" + question + "', steps: [{text: S}]}\n"
	for i, n := range used {
		tape += fmt.Sprintf("  - {user: '^turn %d$', steps: [{text: ok, usage: {input: %d, output: 0}}]}\n", i, n)
	}
	r := newRig(t, options{model: tape})
	r.Await(0, "the start", fake.Ready())
	// The first 800 is full. A summary leaves 780, so 880 is full again.
	want := []int{0, 1, 1, 1, 1, 1, 2}
	for i := range used {
		if i == 4 { // the state survives a restart
			r.Close()
			next := newRig(t, options{model: tape, state: r.state, root: r.root})
			next.Await(0, "the start", fake.Ready())
			next.requests = append(r.requests, next.requests...)
			r = next
		}
		r.turn(t, map[string]any{"chatId": "c", "message": fmt.Sprint("turn ", i)})
		if got, _ := r.summaries(""); got != want[i] {
			t.Errorf("after turn %d: %d summaries, not %d", i, got, want[i])
		}
	}
}

// compact.model writes the summaries and is paid for. If it fails, the chat's own model does. If
// both fail, the chat continues.
func TestCompactModel(t *testing.T) {
	t.Parallel()
	const tape = `
cassette: 1
turns:
  - user: '^(user: |call of |(?s).*` + question + `)'
    steps: [{text: S, usage: {input: 1000, output: 0}}]
  - {user: '^first', steps: [{text: a, usage: {input: 800, output: 0}}]}
  - {user: '^second', steps: [{text: b, usage: {input: 100, output: 0}}]}
`
	refusing := strings.Replace(tape, "steps: [{text: S, usage: {input: 1000, output: 0}}]", "steps: [{error: {status: 400, message: no}}]", 1)
	for name, c := range map[string]struct {
		tape, compact string
		all, own      int
		cost          string // 100 dollars a million for m, 1 for cheap
		notice        bool
	}{
		"its own":      {tape, "", 1, 1, "0.19", false},
		"cheaper":      {tape, "mock/cheap", 1, 0, "0.09", false},
		"not there":    {tape, "keyless/x", 1, 1, "0.19", false},
		"nobody":       {refusing, "", 1, 1, "0.09", true},
		"cheap fails":  {refusing, "mock/cheap", 2, 1, "0.09", true},
		"bare of name": {tape, "cheap", 1, 0, "0.09", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options{model: c.tape, config: map[string]any{
				"compact":   map[string]any{"model": c.compact},
				"providers": map[string]any{"keyless": map[string]any{"api": "openai-chat", "url": "https://nobody.invalid"}, "mock": map[string]any{"models": map[string]any{"cheap": map[string]any{"cost": map[string]any{"input": 1, "output": 1}}}}},
			}})
			r.Await(0, "the start", fake.Ready())
			r.turn(t, map[string]any{"chatId": "c", "message": "first"})
			mark := r.Mark()
			r.turn(t, map[string]any{"chatId": "c", "message": "second"})
			if all, own := r.summaries("m"); all != c.all || own != c.own {
				t.Errorf("%d requests for a summary, %d to the chat's own model", all, own)
			}
			heard := fmt.Sprint(r.Since(mark))
			if !strings.Contains(heard, `"sessionCost":"`+c.cost+`"`) || !strings.Contains(heard, `"text":"b"`) {
				t.Errorf("no cost of %s, or no answer: %s", c.cost, heard)
			}
			if strings.Contains(heard, "could not be compacted") != c.notice || strings.Contains(heard, "auto-compacted") == c.notice {
				t.Errorf("notice: %s", heard)
			}
		})
	}
}
