package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAliases(t *testing.T) {
	a := NewAliases(128)
	long := strings.Repeat("x", 200)
	for _, c := range [][2]string{{"plain_1-a", "plain_1-a"}, {"a.b", "a_b"}, {"a/b", "a_b-2"}, {"a_b", "a_b-3"}, {"a.b", "a_b"}, {"", "_"}, {"ü", "_-2"}, {long, long[:128]}, {long + "y", long[:126] + "-2"}} {
		if got := a.Add(c[0]); got != c[1] || a.Name(got) != c[0] {
			t.Errorf("%q: %q, back %q", c[0], got, a.Name(got))
		}
	}
	if got := a.Name("unheard"); got != "unheard" {
		t.Error(got)
	}
}

// In the result of Conform, each call has the id of its result and a name from the list of tools. The
// original request does not change.
func TestConform(t *testing.T) {
	long := strings.Repeat("i", 70)
	in := Request{
		Tools: []ToolSpec{{Name: "a.b"}, {Name: "a_b"}},
		Messages: []Message{
			{User, []Part{Text{"go"}}},
			{Assistant, []Part{Text{"ok"}, ToolCall{ID: long, Name: "a_b", Arguments: json.RawMessage("{}")}, ToolCall{ID: "x:1", Name: "none/such"}}},
			{User, []Part{ToolResult{ID: long, Text: "r"}, ToolResult{ID: "x:1"}}},
		},
	}
	before, _ := json.Marshal(in)
	out, names := Conform(in, Form{Name: 64, ID: 40})
	if after, _ := json.Marshal(in); string(after) != string(before) {
		t.Errorf("the request was changed: %s", after)
	}
	call, result := out.Messages[1].Parts[1].(ToolCall), out.Messages[2].Parts[0].(ToolResult)
	if len(call.ID) != 40 || result.ID != call.ID || call.Name != "a_b-2" || out.Tools[1].Name != "a_b-2" || out.Tools[0].Name != "a_b" {
		t.Errorf("%+v %+v %+v", call, result, out.Tools)
	}
	if c := out.Messages[1].Parts[2].(ToolCall); c.ID != "x:1" || c.Name != "none_such" {
		t.Errorf("%+v", c)
	}
	var restored []string
	yield := names.RestoreNames(func(d Delta, _ error) bool { restored = append(restored, d.Name); return true })
	for _, name := range []string{"a_b", "a_b-2", "none_such", "unheard"} {
		yield(Delta{Kind: ToolStart, Name: name}, nil)
	}
	if diff := cmp.Diff([]string{"a.b", "a_b", "none/such", "unheard"}, restored); diff != "" {
		t.Error(diff)
	}
	if out, _ := Conform(Request{Tools: []ToolSpec{{Name: "1pass__x"}, {Name: "-"}, {Name: "_1pass__x"}}}, Form{Name: 64, LetterFirst: true}); out.Tools[0].Name != "_1pass__x" || out.Tools[1].Name != "_-" || out.Tools[2].Name != "_1pass__x-2" {
		t.Errorf("%+v", out.Tools)
	}
	if same, _ := Conform(in, Form{}); cmp.Diff(in, same) != "" {
		t.Error(cmp.Diff(in, same))
	}
}
