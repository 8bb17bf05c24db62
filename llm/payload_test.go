package llm

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestPayloads(t *testing.T) {
	type m = map[string]any
	extra := MergePayloads(m{"a": 1, "o": m{"x": 1, "y": 2}, "gone": 1}, m{"a": nil, "o": m{"y": nil, "z": m{"n": nil, "v": 1}}, "new": m{"n": nil}, "gone": m{}})
	body, err := MergeExtra([]byte(`{"a": 5, "b": 6, "o": {"y": 7, "w": 12345678901234567890}}`), extra)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"b":6,"gone":{},"new":{},"o":{"w":12345678901234567890,"x":1,"z":{"v":1}}}`; string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// For any body and payload, MergeExtra returns the same object as merging with encoding/json.
func FuzzMergeExtra(f *testing.F) {
	f.Add(`{"a":{"x":1},"input":[{"t":"a\"b\\"},"}",1e5,null],"z":true}`, `{"a":{"y":null,"z":2},"b":1,"z":null}`)
	f.Add(`{}`, `{"a":{}}`)
	f.Add(`{"a" : 1, "b\"":2}`, `{"b":[]}`)
	f.Fuzz(func(t *testing.T, body, payload string) {
		var base, extra map[string]any
		if json.Unmarshal([]byte(payload), &extra) != nil || len(extra) == 0 || json.Unmarshal([]byte(body), &base) != nil || base == nil || !json.Valid([]byte(body)) {
			return
		}
		want, err := json.Marshal(DeepMerge(base, extra))
		if err != nil {
			return
		}
		for _, b := range []string{body, compactJSON(body)} {
			raw, err := MergeExtra([]byte(b), extra)
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			var merged map[string]any
			if err := json.Unmarshal(raw, &merged); err != nil {
				t.Fatalf("%s is no JSON: %v", raw, err)
			}
			if got, _ := json.Marshal(merged); string(got) != string(want) {
				t.Fatalf("%s with %s:\ngot  %s\nwant %s", b, payload, got, want)
			}
		}
	})
}

func compactJSON(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

func BenchmarkMergeExtra(b *testing.B) {
	body, err := json.Marshal(map[string]any{"input": []string{strings.Repeat("all \"work\" and\n", 20_000)}, "reasoning": map[string]any{"effort": "low"}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := MergeExtra(body, map[string]any{"reasoning": map[string]any{"effort": "high"}}); err != nil {
			b.Fatal(err)
		}
	}
}
