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

// FuzzAppendText compares with encoding/json.
func FuzzAppendText(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, s := range []string{"", "plain", "<a href=\"x\">&\\", "é\u2028\u2029\U0001f600\ufffd", string(all), "cut \xe2\x80", "\x7f\u0080"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendText([]byte("x"), s); string(got) != "x"+string(want) {
			t.Errorf("got %s, want x%s", got, want)
		}
	})
}

func BenchmarkAppendText(b *testing.B) {
	text := strings.Repeat("func main() {\n\tfmt.Println(\"héllo\")\n}\n", 100)
	out := make([]byte, 0, 2*len(text))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		AppendText(out, text)
	}
}
