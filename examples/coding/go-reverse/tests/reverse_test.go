package reverse

import "testing"

func TestReverse(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "abc": "cba", "grün": "nürg", "日本": "本日"} {
		if got := Reverse(text); got != want {
			t.Errorf("Reverse(%q) is %q, want %q", text, got, want)
		}
	}
}
