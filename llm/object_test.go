package llm

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestObject(t *testing.T) {
	type message struct {
		Type string   `json:"type"`
		Role string   `json:"role,omitempty"`
		List []string `json:"list,omitempty"`
		Text *string  `json:"text,omitempty"`
	}
	empty, long := "", strings.Repeat("<x>\n", 100)
	for _, m := range []message{{}, {Role: "user"}, {Type: "a", Text: &empty}, {Type: "a", List: []string{"1", "2"}, Text: &long}} {
		want, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		o := NewObject(nil)
		o.Text("type", m.Type)
		o.Optional("role", m.Role)
		if len(m.List) > 0 {
			raw, err := json.Marshal(m.List)
			if err != nil {
				t.Fatal(err)
			}
			o.Value(append(o.Key("list"), raw...))
		}
		o.Pointer("text", m.Text)
		if got := o.End(); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
