package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSeverities(t *testing.T) {
	for in, want := range map[string]Severity{
		`"error"`: "error", `"Error"`: "error", `"ERR"`: "error", `1`: "error", `"warning"`: "warning", `"warn"`: "warning", `2`: "warning",
		`"info"`: "info", `"information"`: "info", `3`: "info", `"hint"`: "hint", `4`: "hint", `"4"`: "hint",
		`"unknown"`: "", `0`: "", `5`: "", `null`: "", `{}`: "", `[1]`: "", `""`: "",
	} {
		s := Severity("old")
		if err := json.Unmarshal([]byte(in), &s); err != nil || s != want {
			t.Errorf("%s: %q, %v", in, s, err)
		}
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string]Word{
		`"a\nb"`: "a\nb", `7`: "7", `true`: "true", `{"value":"x","target":"y"}`: "x", `{"value":3}`: "3", `{"value":{"value":1}}`: "", `{}`: "", `["a"]`: "",
	} {
		var w Word
		if err := json.Unmarshal([]byte(in), &w); err != nil || w != want {
			t.Errorf("%s: %q, %v", in, w, err)
		}
	}
}

// A client's answer is accepted if it is a non-empty object, and refused otherwise. Its members
// never cause an error.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"diagnostics":[{"uri":1,"severity":{},"range":[],"code":{"value":[]}}]}`, `{"locations":[{"range":{"start":7}}],"status":[]}`,
		`{"answer":{"value":{}},"cancelled":"yes"}`, `{"answer":null}`, `"x"`, `[]`, `[1]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		var m map[string]json.RawMessage
		object := json.Unmarshal([]byte(in), &m) == nil && m != nil
		for _, v := range []any{&DiagnosticsResult{}, &NavigationResult{}, &QuestionResult{}} {
			if _, err := Decode(json.RawMessage(in), v); object && err != nil && !strings.Contains(err.Error(), "nested") {
				t.Errorf("%s: %v", in, err)
			}
		}
		var c Capabilities
		if err := json.Unmarshal([]byte(in), &c); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	})
}
