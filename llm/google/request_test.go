package google

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/llm"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// indentJSON formats JSON for people.
func indentJSON(t *testing.T, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", " "); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return b.String() + "\n"
}

func TestRequests(t *testing.T) {
	user := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.User, Parts: parts} }
	model := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.Assistant, Parts: parts} }
	text := func(s string) llm.Part { return llm.Text{Text: s} }
	call := func(id, name, args string) llm.Part {
		return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}
	}
	png := llm.Image{MediaType: "image/png", Data: []byte("png")}
	gif := llm.Image{MediaType: "image/gif", Data: []byte("gif")}
	const own = "p/google"
	requests := map[string]llm.Request{
		"text":    {System: "Be brief.", Messages: []llm.Message{user(text("Hi"), text("")), model(text("Hello")), user(text("And?"))}, MaxOutput: 100},
		"nothing": {},
		"tools": {
			Messages: []llm.Message{user(text("Go"))}, Reasoning: true,
			Tools: []llm.ToolSpec{{Name: "f", Description: "Does.", Schema: json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}},"required":["p"],"additionalProperties":false}`)}, {Name: "g", Description: "Is.", Schema: json.RawMessage(`{"type":"object"}`)}},
		},
		"parallel results": {Messages: []llm.Message{
			user(text("Go")), model(text("Well"), call("1", "f", `{"p":1}`), call("2", "g", `{"broken`), call("3", "f", `[]`)),
			user(llm.ToolResult{ID: "1", Text: "one"}, llm.ToolResult{ID: "2", Text: "two", Failed: true}, llm.ToolResult{ID: "3"}), user(text("Steered")),
		}},
		"images": {Messages: []llm.Message{
			user(text("Look"), png, gif), model(call("1", "f", `{}`)), user(llm.ToolResult{ID: "1", Text: "shot", Images: []llm.Image{png, gif}}),
		}},
		"reasoning comes back": {Messages: []llm.Message{
			user(text("Go")),
			model(
				llm.Reasoning{Text: "summary", API: own},
				llm.Reasoning{Text: "sealed", API: own, Opaque: json.RawMessage(`[{"on":"thought","signature":"s1"}]`)},
				text("So"),
				llm.Reasoning{API: own, Opaque: json.RawMessage(`[{"on":"text","signature":"s2"},{"on":"call","call":1,"signature":"s3"}]`)},
				call("1", "f", `{}`), call("2", "g", `{}`),
			),
			user(llm.ToolResult{ID: "1", Text: "one"}, llm.ToolResult{ID: "2", Text: "two"}),
		}},
		"foreign reasoning does not": {Messages: []llm.Message{
			user(text("Go")), model(llm.Reasoning{Text: "x", API: "openai/openai-responses", Opaque: json.RawMessage(`[{"on":"call","signature":"s"}]`)}, call("1", "f", `{}`)),
			user(llm.ToolResult{ID: "1", Text: "one"}), model(llm.Reasoning{Text: "y", API: own, Opaque: json.RawMessage(`"not ours"`)}), model(text("Done")), model(text("Really")), user(text("Ok")),
		}},
		"extra": {Messages: []llm.Message{user(text("Go"))}, MaxOutput: 5, Reasoning: true, Extra: map[string]any{
			"generationConfig": map[string]any{"maxOutputTokens": nil, "thinkingConfig": map[string]any{"thinkingLevel": "low"}}, "safetySettings": []any{},
		}},
	}
	testkit.RunCases(t, "testdata/requests.txtar", *update, func(t *testing.T, c *testkit.Case) {
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			body, err := encode(requests[name], own)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c.Golden(name, indentJSON(t, body), true)
		}
	})
	if _, err := encode(llm.Request{Tools: []llm.ToolSpec{{Name: "f", Schema: json.RawMessage(`[]`)}}}, own); err == nil || !strings.Contains(err.Error(), "tool f") {
		t.Errorf("a bad schema: %v", err)
	}
}

func TestSchema(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown keywords":     {`{"type":"string","title":"T","default":"a","pattern":"(?<x>a)","description":"D","$comment":"c"}`, `{"description":"D","type":"string"}`},
		"formats":              {`{"anyOf":[{"type":"string","format":"uri"},{"type":"string","format":"date-time"},{"type":"integer","format":"int64"}]}`, `{"anyOf":[{"type":"string"},{"format":"date-time","type":"string"},{"format":"int64","type":"integer"}]}`},
		"enum":                 {`{"enum":["a","",null,"b"]}`, `{"enum":["a","b"],"type":"string"}`},
		"const":                {`{"const":"a"}`, `{"enum":["a"],"type":"string"}`},
		"numbers in words":     {`{"type":"integer","description":"Level.","enum":[1,2],"minimum":1,"exclusiveMinimum":0}`, `{"description":"Level. One of: 1, 2","minimum":1,"type":"integer"}`},
		"type of a const":      {`{"const":7}`, `{"description":"One of: 7","type":"number"}`},
		"nullable by type":     {`{"type":["string","null"],"description":"D"}`, `{"description":"D","nullable":true,"type":"string"}`},
		"several types":        {`{"type":["string","integer"],"minimum":2}`, `{"anyOf":[{"type":"string"},{"minimum":2,"type":"integer"}]}`},
		"nullable by anyOf":    {`{"anyOf":[{"type":"null"},{"type":"boolean","description":"B"}]}`, `{"description":"B","nullable":true,"type":"boolean"}`},
		"oneOf":                {`{"description":"D","oneOf":[{"type":"boolean"},{"type":"number"}]}`, `{"anyOf":[{"type":"boolean"},{"type":"number"}],"description":"D"}`},
		"array without items":  {`{"type":"array","minItems":1,"uniqueItems":true}`, `{"items":{"type":"string"},"minItems":1,"type":"array"}`},
		"anything":             {`true`, `{"type":"string"}`},
		"no type at all":       {`{"type":"nonsense"}`, `{"type":"string"}`},
		"free object":          {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object"}`},
		"required of no one":   {`{"properties":{"a":{}},"required":["a","a","b",7]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		"reference":            {`{"$ref":"#/$defs/a~1b","description":"here"}`, `{"description":"here","items":{"type":"integer"},"type":"array"}`},
		"reference to nothing": {`{"$ref":"https://x.example/s.json"}`, `{"type":"object"}`},
		"recursive":            {`{"$ref":"#/$defs/tree"}`, `{"properties":{"kids":{"items":{"type":"object"},"type":"array"}},"type":"object"}`},
		"allOf":                {`{"allOf":[{"$ref":"#/$defs/tree"},{"properties":{"b":{"type":"boolean"}},"required":["b"]}],"description":"D"}`, `{"description":"D","properties":{"b":{"type":"boolean"},"kids":{"items":{"properties":{"kids":{"items":{"type":"object"},"type":"array"}},"type":"object"},"type":"array"}},"required":["b"],"type":"object"}`},
	} {
		schema := fmt.Sprintf(`{"type":"object","properties":{"p":%s},"$defs":{"a/b":{"type":"array","items":{"type":"integer"}},"tree":{"properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`, c.in)
		out, err := parameters(json.RawMessage(schema))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(out["properties"].(map[string]any)["p"])
		if string(got) != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// For any schema of a tool, the result of parameters has a bounded size and no keyword that the API
// refuses.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"anyOf":[{"$ref":"#"},{"allOf":[{"$ref":"#/properties/a"}]}],"type":["object","array","null"]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := parameters(raw)
		if err != nil || out == nil {
			return
		}
		nodes := 0
		var check func(m map[string]any)
		check = func(m map[string]any) {
			nodes++
			_, typed := m["type"].(string)
			options, _ := m["anyOf"].([]map[string]any)
			if typed == (len(options) > 0) || m["$ref"] != nil || m["additionalProperties"] != nil {
				t.Fatalf("%v of %s", m, raw)
			}
			for _, o := range options {
				check(o)
			}
			props, _ := m["properties"].(map[string]any)
			for _, p := range props {
				check(p.(map[string]any))
			}
			if items, ok := m["items"].(map[string]any); ok {
				check(items)
			}
		}
		check(out)
		if nodes > 20*maxNodes+len(raw) {
			t.Errorf("%d nodes", nodes)
		}
	})
}
