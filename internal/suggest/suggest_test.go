package suggest

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"title", "defaultTrust", "defaultAgent", "url", "key"}
	for word, want := range map[string]string{
		"titel": "title", "Title": "title", "defaultAgnt": "defaultAgent", "defaultagents": "defaultAgent", "ur": "", "kye": "key", "something": "", "": "",
		"defa": "", "defaultT": "defaultTrust", "DefaultTr": "defaultTrust", "tit": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
