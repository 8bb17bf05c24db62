package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// An answer that is cut, filtered or empty makes a run fail. The user gets the reason, and so does a
// program that reads --json. This holds in every wire format.
func TestExecFailsWithAnIncompleteAnswer(t *testing.T) {
	needs.Long(t)
	type format struct{ api, path string }
	for _, f := range []format{{"openai-chat", "/v1"}, {"openai-responses", ""}, {"anthropic", ""}, {"google", ""}, {"ollama", ""}} {
		for _, c := range []struct{ step, reason, want string }{
			{"text: half an answ, stop: length", "length", "output limit"},
			{"text: I would, stop: refusal", "refusal", "filtered the answer"},
			{"stop: length", "length", "output limit"},
			{"stop: end", "empty", "answer is empty"},
			{`text: "\n", stop: end`, "empty", "answer is empty"},
			{"reasoning: hm, stop: end", "empty", "answer is empty"},
		} {
			if f.api == "ollama" && c.reason == "refusal" {
				continue // it has no such reason
			}
			t.Run(f.api+" "+c.step, func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {"+c.step+"}\n")
				here := newPlace(t, fmt.Sprintf(`ECA_CONFIG={"defaultModel": "mine/m", "chat": {"title": false}, "providers": {"mine": {"api": %q, "url": "%s%s", "key": "k", "fetchModels": false, "models": {"m": {}}}}}`, f.api, p.URL, f.path))
				stdout, stderr, code := runProgram(t, here, "", "exec", "hi")
				if code != exitFailed || strings.Count(stderr, c.want) != 1 {
					t.Errorf("exit code %d, want %q: %s%s", code, c.want, stdout, stderr)
				}
				stdout, _, code = runProgram(t, here, "", "exec", "--json", "hi")
				lines := strings.Split(strings.TrimSpace(stdout), "\n")
				var result struct {
					ExitReason, Error string
					ExitCode          int
				}
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
					t.Fatal(err)
				}
				if code != exitFailed || result.ExitCode != code || result.ExitReason != c.reason || !strings.Contains(result.Error, c.want) {
					t.Errorf("exit code %d: %s", code, lines[len(lines)-1])
				}
			})
		}
	}
}

// Calls that a model began before a filter stopped its answer do not run: they may be half of what
// it meant.
func TestExecRunsNoCallsOfARefusedAnswer(t *testing.T) {
	for _, f := range []struct{ api, path string }{{"openai-chat", "/v1"}, {"openai-responses", ""}, {"anthropic", ""}, {"google", ""}} {
		t.Run(f.api, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, "cassette: 1\ndefault:\n  steps: [{text: The ferret answers.}]\nturns:\n  - steps:\n      - {text: I would, calls: [{tool: eca__write_file, arguments: {path: ran.txt, content: x}}], stop: refusal}\n")
			here := newPlace(t, fmt.Sprintf(`ECA_CONFIG={"defaultModel": "mine/m", "chat": {"title": false}, "providers": {"mine": {"api": %q, "url": "%s%s", "key": "k", "fetchModels": false, "models": {"m": {}}}}}`, f.api, p.URL, f.path))
			stdout, stderr, code := runProgram(t, here, "", "exec", "--approve", "all", "hi")
			if code != exitFailed || !strings.Contains(stderr, "filtered the answer") || strings.Contains(stdout, "ferret") {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
			if _, err := os.Stat(filepath.Join(here.root, "ran.txt")); err == nil {
				t.Error("the call was run")
			}
		})
	}
}

// A server that ends its stream with [DONE] and no finish reason has ended its answer: the model is
// not asked to continue.
func TestExecAcceptsAStreamWithoutAFinishReason(t *testing.T) {
	w := wrongInput{
		bare: true, args: []string{"exec", "--json", "hi"}, answer: answerWithStream("data: {\"choices\":[{\"delta\":{\"content\":\"fine\"}}]}\n\ndata: [DONE]\n\n"),
		config: `{"defaultModel": "mine/m", "chat": {"title": false}, "providers": {"mine": {"api": "openai-chat", "url": "%URL%", "key": "k", "fetchModels": false, "models": {"m": {}}}}}`,
	}
	stdout, _, code, _ := w.run(t)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if last := lines[len(lines)-1]; code != 0 || !strings.Contains(last, `"text":"fine"`) || !strings.Contains(last, `"exitReason":"unmarked"`) || !strings.Contains(stdout, "something may be missing") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// answerWithStream answers requests to a model with a stream.
func answerWithStream(stream string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[{"id":"gpt-5.2"},{"id":"gpt-5.2-mini"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}
}

// answerWithText answers requests to a model with a text, in the format of OpenAI's Responses.
func answerWithText(text string) http.HandlerFunc {
	return answerWithStream(`data: {"type":"response.output_text.delta","item_id":"m","delta":"` + text + `"}` + "\n\n" +
		`data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}` + "\n\n")
}
