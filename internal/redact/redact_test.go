package redact

import (
	"encoding/json"
	"log/slog"
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

// String finds all escaped forms of a secret.
func TestEscaped(t *testing.T) {
	const secret = `p"a<s>s&\word`
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(secret); err != nil {
		t.Fatal(err)
	}
	html, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "key", secret)
	for _, text := range []string{secret, plain.String(), string(html), log.String()} {
		if got := New(secret).String(text); !strings.Contains(got, Mark) || strings.Contains(got, "word") {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestWriter(t *testing.T) {
	var out strings.Builder
	w := Writer(&out, New("my-own-secret").String)
	if n, err := w.Write([]byte("it is my-own-secret.")); n != 20 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := out.String(); got != "it is "+Mark+"." {
		t.Errorf("wrote %q", got)
	}
}

// Results of tools stay as they are, except for known secrets.
func TestKnown(t *testing.T) {
	const text = `sk-abcdefghijklmnopqrstuvwx {"token": "x"} http://u:p@host/?key=1 `
	if got := Known("my-own-secret").String(text + "my-own-secret"); got != text+Mark {
		t.Errorf("%s", got)
	}
}
