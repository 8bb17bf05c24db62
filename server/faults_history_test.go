package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// turnSaid is one message of a request, independent of the API's format.
type turnSaid struct {
	role           string // user or assistant
	texts          []string
	calls, results []string // ids, or names where a format has no ids
}

// validHistory returns an error if an API would refuse or misunderstand the history of a request.
// The last message must be the prompt.
func validHistory(api, path string, body []byte, prompt string) error {
	if strings.HasSuffix(path, "/chat/completions") {
		api = "openai-chat" // servers without the Responses API get Chat Completions instead
	}
	messages, err := readHistory(api, body)
	if err != nil {
		return err
	}
	if len(messages) == 0 || messages[0].role != "user" {
		return errors.New("it does not begin with the user")
	}
	last := messages[len(messages)-1]
	if last.role != "user" || len(last.texts) == 0 || last.texts[len(last.texts)-1] != prompt {
		return fmt.Errorf("it does not end with the prompt: %q", last)
	}
	var open []string // calls of the previous message
	for i, m := range messages {
		if i > 0 && messages[i-1].role == m.role {
			return fmt.Errorf("message %d: two of the %s's in a row", i, m.role)
		}
		if len(m.texts)+len(m.calls)+len(m.results) == 0 || slices.ContainsFunc(m.texts, func(s string) bool { return strings.TrimSpace(s) == "" }) {
			return fmt.Errorf("message %d: nothing is said", i)
		}
		slices.Sort(open)
		slices.Sort(m.results)
		if !slices.Equal(open, m.results) {
			return fmt.Errorf("message %d: results of %q for calls %q", i, m.results, open)
		}
		open = m.calls
	}
	return nil
}

// readHistory reads the messages of a request. Formats without a strict order may have several
// messages of one role in a row; they are combined.
func readHistory(api string, body []byte) ([]turnSaid, error) {
	var b map[string]any
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	var out []turnSaid
	add := func(strict bool, m turnSaid) {
		if n := len(out); n > 0 && out[n-1].role == m.role && !strict {
			out[n-1].texts = append(out[n-1].texts, m.texts...)
			out[n-1].calls = append(out[n-1].calls, m.calls...)
			out[n-1].results = append(out[n-1].results, m.results...)
			return
		}
		out = append(out, m)
	}
	format := wireTestOf(api)
	for _, item := range items(b[format.history]) {
		if m, ok := format.read(item); ok {
			add(!format.lenient, m)
		}
	}
	return out, nil
}

func readResponses(item map[string]any) (turnSaid, bool) {
	switch item["type"] {
	case "function_call":
		return turnSaid{role: "assistant", calls: []string{str(item["call_id"])}}, true
	case "function_call_output":
		return turnSaid{role: "user", results: []string{str(item["call_id"])}}, true
	}
	return turnSaid{role: str(item["role"]), texts: contentTexts(item["content"])}, true
}

func readChat(item map[string]any) (turnSaid, bool) {
	switch item["role"] {
	case "system":
		return turnSaid{}, false
	case "tool":
		return turnSaid{role: "user", results: []string{str(item["tool_call_id"])}}, true
	}
	m := turnSaid{role: str(item["role"]), texts: contentTexts(item["content"])}
	for _, c := range items(item["tool_calls"]) {
		m.calls = append(m.calls, str(c["id"]))
	}
	if len(m.calls) > 0 && strings.Join(m.texts, "") == "" {
		m.texts = nil // these may be empty beside calls
	}
	return m, true
}

func readAnthropic(item map[string]any) (turnSaid, bool) {
	m := turnSaid{role: str(item["role"])}
	for _, c := range items(item["content"]) {
		switch c["type"] {
		case "text":
			m.texts = append(m.texts, str(c["text"]))
		case "tool_use":
			m.calls = append(m.calls, str(c["id"]))
		case "tool_result":
			m.results = append(m.results, str(c["tool_use_id"]))
		}
	}
	return m, true
}

func readGoogle(item map[string]any) (turnSaid, bool) {
	role := strings.Replace(str(item["role"]), "model", "assistant", 1)
	return readParts(role, item["parts"], "functionCall", "functionResponse", "name"), true
}

func readBedrock(item map[string]any) (turnSaid, bool) {
	return readParts(str(item["role"]), item["content"], "toolUse", "toolResult", "toolUseId"), true
}

// readParts reads parts that have one key each, which is their type.
func readParts(role string, parts any, call, result, id string) turnSaid {
	m := turnSaid{role: role}
	for _, c := range items(parts) {
		if s, ok := c["text"].(string); ok {
			m.texts = append(m.texts, s)
		}
		for k, to := range map[string]*[]string{call: &m.calls, result: &m.results} {
			if v, ok := c[k].(map[string]any); ok {
				*to = append(*to, str(v[id]))
			}
		}
	}
	return m
}

func items(v any) []map[string]any {
	var out []map[string]any
	list, _ := v.([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// contentTexts reads a content that is a string or a list of parts.
func contentTexts(v any) []string {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	var out []string
	for _, p := range items(v) {
		if s, ok := p["text"].(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// validHistory finds the errors that the APIs would refuse.
func TestValidHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, api, body, want string }{
		{"responses", "openai-responses", `{"input":[{"role":"user","content":[{"text":"hi"}]},{"type":"function_call","call_id":"1"},{"type":"function_call_output","call_id":"1"},{"role":"user","content":[{"text":"p"}]}]}`, ""},
		{"a call without a result", "openai-responses", `{"input":[{"role":"user","content":[{"text":"hi"}]},{"type":"function_call","call_id":"1"},{"role":"user","content":[{"text":"p"}]}]}`, `results of [] for calls ["1"]`},
		{"a result without a call", "openai-chat", `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"},{"role":"tool","tool_call_id":"1"},{"role":"user","content":"p"}]}`, `results of ["1"] for calls []`},
		{"chat", "openai-chat", `{"messages":[{"role":"system","content":""},{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1"},{"role":"user","content":"p"}]}`, ""},
		{"an empty answer", "ollama", `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":""},{"role":"user","content":"p"}]}`, "nothing is said"},
		{"two in a row", "anthropic", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"user","content":[{"type":"text","text":"p"}]}]}`, "two of the user's in a row"},
		{"no content", "anthropic", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"text","text":"p"}]}]}`, "nothing is said"},
		{"google", "google", `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f"}},{"text":"p"}]}]}`, ""},
		{"another result", "bedrock", `{"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"1"}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"2"}},{"text":"p"}]}]}`, `results of ["2"] for calls ["1"]`},
		{"the model's last", "bedrock", `{"messages":[{"role":"user","content":[{"text":"p"}]},{"role":"assistant","content":[{"text":"a"}]}]}`, "does not end with the prompt"},
		{"the model's first", "bedrock", `{"messages":[{"role":"assistant","content":[{"text":"a"}]},{"role":"user","content":[{"text":"p"}]}]}`, "does not begin with the user"},
		{"nothing", "google", `{}`, "does not begin"},
	} {
		err := validHistory(c.api, "", []byte(c.body), "p")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
