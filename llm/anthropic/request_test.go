package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/llm"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

const from = "p/" + API

func user(parts ...llm.Part) llm.Message  { return llm.Message{Role: llm.User, Parts: parts} }
func model(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.Assistant, Parts: parts} }

func call(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}
}

func thought(api, text, opaque string) llm.Reasoning {
	return llm.Reasoning{ID: "r", Text: text, API: api, Opaque: json.RawMessage(opaque)}
}

// Each request body is a golden in testdata/requests.
func TestRequests(t *testing.T) {
	png := llm.Image{MediaType: "image/png", Data: []byte("\x89PNG")}
	tools := []llm.ToolSpec{
		{Name: "eca__read_file", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		{Name: "docs__search.all", Description: "Searches <everything>.", Schema: json.RawMessage(`{"anyOf":[{"required":["a"]}],"properties":{}}`)},
		{Name: "x__nothing"},
	}
	loop := []llm.Message{
		user(llm.Text{Text: "read both"}),
		model(thought(from, "Both.", `{"signature":"sig"}`), thought(from, "", `{"redacted":"blob"}`), llm.Text{Text: "Reading."}, call("toolu_1", "eca__read_file", `{"path":"/a"}`), call("toolu_2", "eca__read_file", `{"path":"/b"}`)),
		user(llm.ToolResult{ID: "toolu_1", Text: "A"}, llm.ToolResult{ID: "toolu_2", Text: "no such file", Failed: true}),
		user(llm.Text{Text: "hurry"}),
	}
	for name, req := range map[string]llm.Request{
		"text": {Model: "claude-sonnet-4-6", System: "Be brief.", MaxOutput: 64000, Messages: []llm.Message{
			user(llm.Text{Text: "hi"}, llm.Text{Text: " \n"}), user(llm.Text{Text: "again"}), model(llm.Text{Text: "hello"}), model(llm.Text{Text: ""}), user(llm.Text{Text: "bye"}),
		}},
		"once": {
			Model: "claude-haiku-4-5", Purpose: llm.PurposeTitle, System: "Title.", Messages: []llm.Message{user(llm.Text{Text: "hi"})},
			Extra: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 9000}, "service_tier": "standard_only"},
		},
		"tools":        {Model: "claude-haiku-4-5-20251001", Tools: tools, Messages: loop, Reasoning: true, MaxOutput: 8000},
		"adaptive":     {Model: "claude-opus-4-7", Messages: loop, Reasoning: true},
		"bound":        {Model: "claude-opus-5-5", Messages: loop, Reasoning: true},
		"no_reasoning": {Model: "claude-haiku-4-5", Messages: loop},
		"foreign": {Model: "claude-sonnet-4-5", Tools: tools, Reasoning: true, Messages: []llm.Message{
			user(llm.Text{Text: "x"}),
			model(thought("openai/openai-responses", "no", `{"type":"reasoning"}`), thought("", "cut", ``), call("call|1/ä", "functions.read", `{"a":1}`), call("call_1__", "docs__search.all", `not json`)),
			user(llm.ToolResult{ID: "call|1/ä", Text: ""}, llm.ToolResult{ID: "call_1__", Failed: true}),
		}},
		"images": {Model: "claude-sonnet-4-6", Messages: []llm.Message{
			user(llm.Text{Text: "look"}, png, llm.Image{MediaType: "image/tiff", Data: []byte("II*")}, llm.Image{MediaType: "image/png", Data: make([]byte, 4<<20)}),
			model(call("1", "shot", `{}`), call("2", "shot", `{}`)),
			user(llm.ToolResult{ID: "1", Text: "done", Images: []llm.Image{png}}, llm.ToolResult{ID: "2", Failed: true, Images: []llm.Image{png}}),
		}},
		"extra": {Model: "claude-sonnet-4-5", Reasoning: true, Messages: []llm.Message{user(llm.Text{Text: "x"})}, Extra: map[string]any{
			"thinking": map[string]any{"budget_tokens": 4000}, "metadata": map[string]any{"user_id": "u"}, "max_tokens": 16000, "stream": nil,
		}},
		"extra_form": {Model: "claude-sonnet-4-5", Reasoning: true, Messages: []llm.Message{user(llm.Text{Text: "x"})}, Extra: map[string]any{
			"thinking": map[string]any{"type": "adaptive"}, "output_config": map[string]any{"effort": "high"},
		}},
		"extra_off": {Model: "claude-sonnet-4-5", Reasoning: true, Messages: []llm.Message{user(llm.Text{Text: "x"})}, Extra: map[string]any{"thinking": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			body, _, err := encode(req, from)
			if err != nil {
				t.Fatal(err)
			}
			again, _, _ := encode(req, from)
			if !bytes.Equal(body, again) {
				t.Error("encoding the same request again returns other bytes")
			}
			if n := strings.Count(string(body), `"cache_control"`); n > 4 {
				t.Errorf("%d cache breakpoints", n)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, body, "", " "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			path := filepath.Join("testdata", "requests", name+".json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A request begins with the same bytes as all messages of the request before it, and has a cache
// breakpoint at the end of those. Otherwise the provider's cache would not apply.
func TestPrefixIsStable(t *testing.T) {
	prefix := func(history []llm.Message, marks, upTo int) string {
		e := encoder{origin: from, tools: llm.NewAliases(maxName), calls: llm.NewAliases(maxName)}
		r := request{Messages: e.messages(history)}
		markCache(&r, 0, llm.Retention("").Mark())
		var b strings.Builder
		for i, m := range r.Messages[:upTo] {
			last := &m.Content[len(m.Content)-1]
			if marked := last.Cache != nil; marked != (i >= marks && m.Role == llm.User) {
				t.Errorf("%d messages: breakpoint at %d: %v", len(history), i, marked)
			}
			last.Cache = nil
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(raw)
		}
		return b.String()
	}
	history := []llm.Message{user(llm.Text{Text: "go"})}
	for i := range 5 {
		before := prefix(history, len(history)-3, len(history))
		parts, results := []llm.Part{}, []llm.Part{}
		for j := range 15 {
			id := fmt.Sprintf("c %d/%d", i, j)
			parts, results = append(parts, call(id, "f", `{}`)), append(results, llm.ToolResult{ID: id, Text: "r"})
		}
		history = append(history, model(parts...), user(results...))
		if after := prefix(history, len(history)-3, len(history)-2); after != before {
			t.Errorf("the request after step %d does not begin with the messages of the request before", i)
		}
	}
}

func TestSchemaMustBeAnObject(t *testing.T) {
	got := answers(llm.Endpoint{Provider: "p"}, llm.Request{Tools: []llm.ToolSpec{{Name: "f", Schema: json.RawMessage(`[1]`)}}})
	if !strings.HasPrefix(got, "!bad_request The request could not be encoded: schema of tool f: ") {
		t.Error(got)
	}
}

func TestClaudeVersion(t *testing.T) {
	for model, want := range map[string]int{
		"claude-sonnet-4-6": 406, "claude-opus-4-1-20250805": 401, "claude-sonnet-4-20250514": 400, "claude-3-7-sonnet-latest": 307, "claude-3-opus-20240229": 300,
		"anthropic/claude-4.6-sonnet": 406, "claude-fable-5": 500, "claude-opus-5-5[1m]": 505, "Claude-Opus-4@20250514": 400, "claude-instant-1.2": 102,
		"claude-opus-latest": 407, "glm-5.2": 0, "": 0,
	} {
		if got, claude := claudeVersion(model); got != want || claude != (want > 0) {
			t.Errorf("%s: %d %v", model, got, claude)
		}
	}
	for model, want := range map[string]bool{"claude-3-5-haiku-20241022": false, "claude-3-7-sonnet-20250219": true, "claude-haiku-4-5": true, "glm-4.6": true} {
		if CanThink(model) != want {
			t.Errorf("%s: %v", model, !want)
		}
	}
}

func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		model       string
		own, models map[string]string
		want        map[string]string
	}{
		"plain": {"claude-opus-4-7", nil, nil, map[string]string{"Anthropic-Version": version, "Anthropic-Beta": ""}},
		"bound": {"claude-opus-5-5", nil, nil, map[string]string{"Anthropic-Beta": betaBinding}},
		"users win": {
			"claude-opus-5-5",
			map[string]string{"anthropic-version": "2030-01-01"},
			map[string]string{"anthropic-beta": "mine"},
			map[string]string{"Anthropic-Version": "2030-01-01", "Anthropic-Beta": "mine," + betaBinding},
		},
	} {
		var got http.Header
		at := endpoint(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
		for k, v := range c.own {
			at.Headers[k] = v
		}
		answers(at, llm.Request{Model: c.model, Headers: c.models})
		for k, v := range c.want {
			if got.Get(k) != v {
				t.Errorf("%s: %s is %q", name, k, got.Values(k))
			}
		}
		if got.Get(KeyHeader) != "sk-planted" || got.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://api.anthropic.com":      "https://api.anthropic.com/v1/messages",
		"https://x.example/v1/":          "https://x.example/v1/messages",
		"https://api.z.ai/api/anthropic": "https://api.z.ai/api/anthropic/v1/messages",
	} {
		if got := URL(in, ""); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := URL("https://x.example/", "/own"); got != "https://x.example/own" {
		t.Error(got)
	}
}

func TestListModels(t *testing.T) {
	at := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		pages := map[string]string{
			"":     `{"data":[{"type":"model","id":"claude-a","display_name":"A"},{"id":""}],"has_more":true,"first_id":"claude-a","last_id":"b&c"}`,
			"b&c":  `{"data":[{"id":"claude-d"}],"has_more":true,"last_id":"loop"}`,
			"loop": `{"data":[{"id":"claude-e"}],"has_more":true,"last_id":"loop"}`,
		}
		page := pages[r.URL.Query().Get("after_id")]
		if r.URL.Path != "/v1/models" || r.Header.Get(KeyHeader) != "sk-planted" || r.Header.Get("Anthropic-Version") != version {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(page))
	})
	names, err := ListModels(context.Background(), at)
	if got := strings.Join(slices.Sorted(maps.Keys(names)), " "); err != nil || got != "claude-a claude-d claude-e" {
		t.Errorf("%s, %v", got, err)
	}
	at.Headers = nil
	if _, err := ListModels(context.Background(), at); err == nil || !strings.HasPrefix(err.Error(), "p answered 403 Forbidden: ") {
		t.Error(err)
	}
}

// Parts that may change from request to request are after the breakpoint of the system
// prompt.
func TestSystemTail(t *testing.T) {
	ask := []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "hi"}}}}
	for _, c := range []struct{ system, tail, want string }{
		{"fixed", "moving", `"system":[{"type":"text","text":"fixed","cache_control":{"type":"ephemeral"}},{"type":"text","text":"moving"}]`},
		{"fixed", "", `"system":[{"type":"text","text":"fixed","cache_control":{"type":"ephemeral"}}]`},
		{"", "moving", `"system":[{"type":"text","text":"moving"}]`},
	} {
		body, _, err := encode(llm.Request{Model: "m", Purpose: llm.PurposeTurn, System: c.system, SystemTail: c.tail, Messages: ask}, from)
		if err != nil || !strings.Contains(string(body), c.want) {
			t.Errorf("%+v: %s, %v", c, body, err)
		}
	}
}
