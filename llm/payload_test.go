package llm

import "testing"

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
