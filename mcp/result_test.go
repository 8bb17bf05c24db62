package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// png is the beginning of an image, in base64.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"

// The model gets the structured content only if the texts do not already contain it.
func TestStructuredContentOnce(t *testing.T) {
	for _, c := range []struct {
		structured string
		texts      []string
		added      bool
	}{
		{`{"a":1,"b":[true,null]}`, []string{"{\n  \"b\": [true, null],\n  \"a\": 1.0\n}"}, false},
		{`{"a":1e3}`, []string{"here it is", `{"a":1000}`}, false},
		{`{"result":"hello\nworld"}`, []string{"hello\nworld"}, false},
		{`{"result":42}`, []string{"42"}, false},
		{`{"result":[{"a":1},{"a":2}]}`, []string{`{"a": 1}`, `{"a": 2}`}, false},
		{`{"items":["x","y"]}`, []string{"x", "y"}, false},
		{`[1,2]`, []string{"[1, 2]"}, false},
		{`{"a":1}`, []string{"one thing was found"}, true},
		{`{"a":1}`, []string{`{"a":1,"b":2}`}, true},
		{`{"a":9007199254740993}`, []string{`{"a":9007199254740992}`}, true},
		{`{"a":"1"}`, []string{`{"a":1}`}, true},
		{`{"a":[1,2]}`, []string{`{"a":[2,1]}`}, true},
		{`{"a":1}`, []string{""}, true},
		{`{"a":1}`, nil, true},
		{`null`, []string{"text"}, false},
	} {
		var content []map[string]string
		for _, text := range c.texts {
			content = append(content, map[string]string{"type": "text", "text": text})
		}
		raw, _ := json.Marshal(map[string]any{"content": content, "structuredContent": json.RawMessage(c.structured)})
		res, err := convertResult(raw, nil)
		want := len(c.texts)
		if c.added {
			want++
		}
		if err != nil || len(res.Outputs) != want {
			t.Errorf("%s with %q: %q, %v", c.structured, c.texts, res.Outputs, err)
		}
	}
}

// Binary data is described and never shown as text, however a server sends it.
func TestBinaryIsNotText(t *testing.T) {
	const image = `"mimeType":"image/png"`
	for name, c := range map[string]struct {
		result string
		want   string
		images int
	}{
		"image":                 {`{"content":[{"type":"image","data":"` + png + `",` + image + `}]}`, "[image image/png, 33 bytes]", 1},
		"image without padding": {`{"content":[{"type":"image","data":"` + png + `AA",` + image + `}]}`, "[image image/png, 34 bytes]", 1},
		"image with line ends":  {`{"content":[{"type":"image","data":"` + png[:20] + `\n` + png[20:] + `",` + image + `}]}`, "[image image/png, 33 bytes]", 1},
		"invalid base64":        {`{"content":[{"type":"image","data":"!!",` + image + `}]}`, "not valid base64", 0},
		"audio":                 {`{"content":[{"type":"audio","data":"` + png + `","mimeType":"audio/wav"}]}`, "[audio audio/wav, 33 bytes: models cannot hear it]", 0},
		"blob":                  {`{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"application/zip","blob":"` + png + `"}}]}`, "[resource a:b (application/zip), 33 bytes: not text]", 0},
		"blob of an image":      {`{"content":[{"type":"resource","resource":{"uri":"a:b",` + image + `,"blob":"` + png + `"}}]}`, "[image image/png a:b, 33 bytes]", 1},
		"blob without a type":   {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"` + png + `"}}]}`, "33 bytes: not text]", 0},
		"text that is a PDF":    {`{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"application/pdf","text":"` + png + `"}}]}`, "33 bytes: not text]", 0},
		"text that is an image": {`{"content":[{"type":"resource","resource":{"uri":"a:b",` + image + `,"text":"` + png + `"}}]}`, "33 bytes]", 1},
		"data URL":              {`{"content":[{"type":"text","text":"data:image/png;base64,` + png + `"}]}`, "[data image/png, 33 bytes]", 1},
		"data URL in a text":    {`{"content":[{"type":"text","text":"See ![](data:image/png;base64,` + png + `) there"}]}`, "See ![]([data image/png, 33 bytes]) there", 1},
		"structured":            {`{"content":[],"structuredContent":{"files":[{` + image + `,"data":"` + png + `","n":9007199254740993}]}}`, `{"files":[{"data":"[image/png, 33 bytes]","mimeType":"image/png","n":9007199254740993}]}`, 0},
		"structured data URL":   {`{"content":[],"structuredContent":{"icon":"data:image/png;base64,` + png + `"}}`, `{"icon":"[data image/png, 33 bytes]"}`, 0},
	} {
		res, err := convertResult(json.RawMessage(c.result), nil)
		got := strings.Join(res.Outputs, "\n")
		if err != nil || !strings.Contains(got, c.want) || strings.Contains(got, "iVBOR") || len(res.Images) != c.images {
			t.Errorf("%s: %q, %d images, %v", name, got, len(res.Images), err)
		}
	}
	for name, result1 := range map[string]string{
		"the text of a PDF": `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"application/pdf","text":"It says hello to you."}}]}`,
		"an SVG":            `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"image/svg+xml","text":"It says hello to you."}}]}`,
		"a text":            `{"content":[{"type":"text","text":"It says hello to you."}]}`,
	} {
		if res, err := convertResult(json.RawMessage(result1), nil); err != nil || !strings.Contains(strings.Join(res.Outputs, ""), "It says hello to you.") {
			t.Errorf("%s: %q, %v", name, res.Outputs, err)
		}
	}
}

// Errors name the members of the result, not our types.
func TestMalformedResults(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":"a"}`:              "the server's answer does not follow MCP: content must be an array, not a string",
		`{"content":[],"isError":"x"}`: "isError must be a boolean, not a string",
		`[]`:                           "the value must be an object, not an array",
		`{"content"`:                   "invalid JSON at byte 10",
	} {
		if _, err := convertResult(json.RawMessage(raw), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// Results are checked against the schema that the tool declares; their texts are shown even if they
// do not match.
func TestResultsMatchTheirSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"temperature":{"type":"number"},"tree":{"$ref":"#/$defs/node"}},"required":["temperature"],
		"$defs":{"node":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`
	for structured, want := range map[string]string{
		`{"temperature":36.6}`: "",
		`{"temperature":1,"tree":{"children":[{"children":[]}]}}`: "",
		`{"temperature":"hot"}`:                                   "does not match the output schema that the tool declares: validating /properties/temperature",
		`{}`:                                                      `missing properties: ["temperature"]`,
		`{"temperature":1,"tree":{"children":[{"children":[1]}]}}`: "/$defs/node",
		`null`: "sent no structured content",
	} {
		res, err := convertResult(json.RawMessage(`{"content":[{"type":"text","text":"it is warm"}],"structuredContent":`+structured+`}`), newOutputSchema(json.RawMessage(schema)))
		got := strings.Join(res.Outputs, "\n")
		if err != nil || res.Failed != (want != "") || !strings.Contains(got, want) || !strings.Contains(got, "it is warm") {
			t.Errorf("%s: %q, failed: %v, %v", structured, got, res.Failed, err)
		}
	}
	// A failed result needs no structured content.
	res, err := convertResult(json.RawMessage(`{"content":[{"type":"text","text":"no"}],"isError":true}`), newOutputSchema(json.RawMessage(schema)))
	if err != nil || len(res.Outputs) != 1 || !res.Failed {
		t.Errorf("%+v, %v", res, err)
	}
}

// A result passes unchecked if its schema is invalid, refers to another document, or would take too
// many steps to check (for example, because it refers to itself).
func TestSchemasWithoutEnd(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`,
		`{"anyOf":[{"additionalProperties":{"$ref":"#"}},{"additionalProperties":{"$ref":"#"}},{"properties":{"a":{"$ref":"#"}}}],"not":{}}`,
		`{"$dynamicRef":"#x"}`, `{"$ref":"https://elsewhere.example/schema"}`, `{"type":5}`, `[]`, `{"pattern":"("}`,
	} {
		start := time.Now()
		if err := newOutputSchema(json.RawMessage(schema)).check(json.RawMessage(deep)); err != nil || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %v after %s", schema, err, time.Since(start))
		}
	}
}

// Characters that reverse text, are invisible or control a terminal are escaped, wherever a server
// sends them. Requests to the server still use its own names.
func TestHiddenCharactersAreWrittenOut(t *testing.T) {
	const want = `a\u202eb\u001b[2Jc\u200bd`
	r := newRig(t, map[string]string{"s": "hidden"})
	s := r.await("s", Running)
	r.until("the prompts", func() bool {
		s, _ = r.m.Status("s")
		return s.Offer != nil && len(s.Offer.Prompts) > 0 && len(s.Offer.Resources) > 0
	})
	if s.Offer.Instructions != want || s.Offer.Server != want+" "+want {
		t.Errorf("the server: %q, %q", s.Offer.Instructions, s.Offer.Server)
	}
	spec := r.m.Tools()[0].Spec()
	if spec.Name != want || spec.Description != want || strings.Contains(string(spec.Schema), "202e\"") || !strings.Contains(string(spec.Schema), `a\\u202eb`) {
		t.Errorf("the tool: %q, %q, %s", spec.Name, spec.Description, spec.Schema)
	}
	if got := r.text("s", want, `{}`); got != "you called "+want {
		t.Errorf("its result: %q", got)
	}
	prompt := s.Offer.Prompts[0]
	if prompt.Name != want || prompt.Description != want || prompt.Arguments[0].Name != want {
		t.Errorf("the prompt: %+v", prompt)
	}
	said, err := r.m.Prompt(t.Context(), "s", want, map[string]string{want: "x"})
	if err != nil || said[0].Text != fmt.Sprintf("%s with %s", want, want) {
		t.Errorf("it says %+v, %v", said, err)
	}
	if got := s.Offer.Resources[0]; got.Name != want || got.Description != want {
		t.Errorf("the resource: %+v", got)
	}
}
