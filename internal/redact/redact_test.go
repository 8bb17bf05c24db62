package redact

import (
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	r := New("my-own-secret", "my-own", "x")
	for in, want := range map[string]string{
		"key my-own-secret!":                         "key " + Mark + "!",
		"sk-abcdefghijklmnopqrstuvwx and text":       Mark + " and text",
		"ghp_abcdefghijklmnopqrstuvwxyz0123":         Mark,
		"AKIAABCDEFGHIJKLMNOP":                       Mark,
		"Authorization: Bearer abcdefghijklmnop1234": "Authorization: " + Mark,
		"xylophone sky-blue task-list ask":           "xylophone sky-blue task-list ask",
		`{"key":"short","apiKey":"v1","text":"ok"}`:  `{"key":"` + Mark + `","apiKey":"` + Mark + `","text":"ok"}`,
		`{"api-key" : "a\"b", "keyboard":"qwerty"}`:  `{"api-key" : "` + Mark + `", "keyboard":"qwerty"}`,
	} {
		if got := r.String(in); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
	}
	if got := r.String("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"); strings.Contains(got, "abc") {
		t.Errorf("a private key passed: %s", got)
	}
}
