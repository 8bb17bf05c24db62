package protocol

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func decodePrompt(t testing.TB, in string) ChatPromptParams {
	t.Helper()
	var p ChatPromptParams
	if _, err := Decode(json.RawMessage(in), &p); err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	return p
}

// Spellings of real clients (eca-recorded) have the same meaning.
func TestSpellings(t *testing.T) {
	want := decodePrompt(t, `{"chatId":"1","message":"hi","agent":"plan","trust":true,"contexts":[{"type":"file","path":"/a","linesRange":{"start":1,"end":2}}]}`)
	for _, in := range []string{
		`{"chat-id":"1","message":"hi","agent":"plan","trust":true,"contexts":[{"type":"file","path":"/a","lines-range":{"start":1,"end":2}}]}`,
		`{"chat_id":1,"message":"hi","agent":"plan","trust":"true","contexts":[{"type":"file","path":"/a","lines_range":{"start":1,"end":2}}],"request-id":7,"unknown":{}}`,
		`{"chatId":"1","chat-id":"other","message":"hi","agent":"plan","trust":true,"model":null,"variant":7,"contexts":[7,{"type":"file","path":"/a","linesRange":{"start":1,"end":2}},"x"]}`,
	} {
		if got := decodePrompt(t, in); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", in, got, want)
		}
	}
	for _, empty := range []string{`{}`, `null`, `[]`, `"x"`} {
		if p := decodePrompt(t, `{"message":"hi","contexts":`+empty+`}`); len(p.Contexts) != 0 {
			t.Errorf("contexts %s: %v", empty, p.Contexts)
		}
	}
	for _, params := range []string{``, `null`, `[]`} {
		var p ChatParams
		if _, err := Decode(json.RawMessage(params), &p); err != nil {
			t.Errorf("params %q: %v", params, err)
		}
	}
}

func TestInitializeParams(t *testing.T) {
	for in, pid := range map[string]Number{
		`{"processId":12}`: 12, `{"processId":null}`: 0, `{"processId":"12"}`: 12, `{"process-id":1.0}`: 1, `{"clientInfo":"emacs","capabilities":{"chat":{}}}`: 0,
		`{"processId":1.5}`: 0, `{"processId":[]}`: 0, `{"workspaceFolders":null}`: 0,
	} {
		var p InitializeParams
		if _, err := Decode(json.RawMessage(in), &p); err != nil || p.ProcessID != pid {
			t.Errorf("%s: %d, %v", in, p.ProcessID, err)
		}
	}
	// The user's own keys keep their spelling.
	var p InitializeParams
	if _, err := Decode(json.RawMessage(`{"initialization-options":{"my-key":{"a_b":null}}}`), &p); err != nil || string(p.InitializationOptions) != `{"my-key":{"a_b":null}}` {
		t.Errorf("%s, %v", p.InitializationOptions, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, in := range []string{`[1]`, `7`, `{"chatId":{}}`, `{"message":7}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)} {
		var p ChatPromptParams
		if _, err := Decode(json.RawMessage(in), &p); err == nil {
			t.Errorf("%.40s was accepted: %+v", in, p)
		}
	}
}

// Changing one value of a prompt changes at most one field.
func TestOneChangedValueChangesOneField(t *testing.T) {
	base := map[string]any{
		"chatId": "c", "message": "m", "model": "a/b", "agent": "x", "behavior": "y", "variant": "v", "trust": true,
		"contexts": []any{map[string]any{"type": "text", "label": "l", "content": "t"}},
	}
	encode := func(m map[string]any) ChatPromptParams {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return decodePrompt(t, string(raw))
	}
	want := reflect.ValueOf(encode(base))
	for key, old := range base {
		for _, v := range []any{nil, "other", 7, false, []any{}, map[string]any{}} {
			if key == "message" || key == "chatId" {
				if _, ok := v.(string); !ok {
					continue // those two must be valid
				}
			}
			base[key] = v
			got := reflect.ValueOf(encode(base))
			changed := 0
			for i := range got.NumField() {
				if !reflect.DeepEqual(got.Field(i).Interface(), want.Field(i).Interface()) {
					changed++
				}
			}
			if changed > 1 {
				t.Errorf("%s = %v changes %d fields", key, v, changed)
			}
		}
		base[key] = old
	}
}

// Of a repeated member, the last one counts, and its path is reported.
func TestRepeatedMembers(t *testing.T) {
	for in, want := range map[string][2]string{
		`{"query":"a","query":"b"}`:                              {"query", "b"},
		`{"query":"a","que\u0072y":null}`:                        {"query", ""},
		`{"query":"a","contexts":[{},{"path":1,"path":2}]}`:      {"contexts[1].path", "a"},
		`{"query":"a","data":{"a-b":{"x":[{"y":1,"y":2}]}}}`:     {"data.a-b.x[0].y", "a"},
		`{"query":"a","contexts":[{"path":1},{"path":1}],"q":1}`: {"", "a"},
	} {
		var p struct{ Query string }
		repeated, err := Decode(json.RawMessage(in), &p)
		if err != nil || repeated != want[0] || p.Query != want[1] {
			t.Errorf("%s: %q, %q, %v", in, repeated, p.Query, err)
		}
	}
	var p InitializeParams
	const free = `{"b":[{"d":1,"c":2}],"a-x":null}`
	if _, err := Decode(json.RawMessage(`{"initializationOptions":`+free+`}`), &p); err != nil || string(p.InitializationOptions) != free {
		t.Errorf("%s, %v", p.InitializationOptions, err)
	}
	deep := strings.Repeat(`{"a":`, 2*maxDepth) + "1" + strings.Repeat("}", 2*maxDepth)
	if _, err := Decode(json.RawMessage(`{"data":`+deep+`}`), &struct{}{}); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"chat-id":1,"contexts":{},"message":"x"}`)
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		var p ChatPromptParams
		if _, err := Decode(json.RawMessage(in), &p); err != nil {
			return
		}
		var again ChatPromptParams
		if _, err := Decode(json.RawMessage(in), &again); err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%s decodes differently the second time", in)
		}
	})
}
