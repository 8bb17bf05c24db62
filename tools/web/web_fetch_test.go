package web

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/fetch"
)

const page = `<!doctype html><html><head><title>T</title><style>p{}</style></head><body><nav>Menu</nav>
<h1>Head</h1><p>One <b>two</b> <a href="/x?a=1">three</a>.</p><script>alert(1)</script>
<ul><li>a</li><li>b</li></ul><pre>x  y
 z</pre><table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>`

func TestRender(t *testing.T) {
	for _, c := range []struct {
		name, format, kind, body string
		want                     string
		failed                   bool
	}{
		{"markdown", "", "text/html; charset=utf-8", page, "# Head\n\nOne **two** [three](https://example.com/x?a=1).\n\n- a\n- b\n\n```\nx  y\n z\n```\n\n| k | v |\n|---|---|\n| 1 | 2 |", false},
		{"text", "text", "text/html", page, "Head\nOne two three.\na\nb\nx  y\n z\nk v\n1 2", false},
		{"html", "html", "text/html", page, page, false},
		{"json", "", "application/json", `{"a": 1}`, `{"a": 1}`, false},
		{"no type", "text", "", page, "Head\nOne two three.\na\nb\nx  y\n z\nk v\n1 2", false},
		{"latin 1", "", "text/html; charset=iso-8859-1", "<p>gr\xfc\xdfe</p>", "grüße", false},
		{"latin 1 by the page", "", "text/html", `<meta charset="windows-1252"><p>` + "\x80 5</p>", "€ 5", false},
		{"broken text", "", "text/plain", "a\xffb", "a�b", false},
		{"binary", "", "application/octet-stream", "a\x00b", "[the page is not text]", true},
		{"empty", "", "text/html", "", "", false},
		{"much to escape", "", "text/html", "<b>" + strings.Repeat("[", 30_000) + "</b>", strings.Repeat("[", 30_000), false},
		{"too large", "text", "text/html", "a" + strings.Repeat(" ", 2<<20) + "b", "a\n\n[the page is too large; its end is left out]", false},
		{"too many tags", "", "text/html", "a" + strings.Repeat("<br>", 200_000) + "b", "a\n\n[the page is too large; its end is left out]", false},
	} {
		res := render(&fetch.Page{URL: "https://example.com/d/", Status: 200, Type: c.kind, Body: []byte(c.body)}, c.format)
		_, got, _ := strings.Cut(res.Outputs[0], "\n\n")
		if got != c.want || res.Failed != c.failed {
			t.Errorf("%s: %q, want %q; %v", c.name, got, c.want, res.Failed)
		}
	}
	res := render(&fetch.Page{URL: "https://example.com/", Status: 404, Type: "text/plain", Body: []byte("gone"), Cut: true}, "")
	if res.Outputs[0] != "https://example.com/: 404 Not Found, text/plain, cut after 4 bytes\n\ngone" || !res.Failed {
		t.Errorf("%+v", res)
	}
	res = render(&fetch.Page{URL: "https://example.com/", Status: 200, Type: "text/html", Body: []byte("GIF89a\x01\x00")}, "")
	if len(res.Images) != 1 || res.Images[0].MediaType != "image/gif" || res.Failed {
		t.Errorf("an image: %+v", res)
	}
}

func FuzzRender(f *testing.F) {
	f.Add(page, "text/html", "")
	f.Add("<table><tr><td>a<ul><li><pre>", "text/html", "text")
	f.Add(strings.Repeat("<div>", 1000), "text/html; charset=utf-16", "markdown")
	f.Fuzz(func(t *testing.T, body, kind, format string) {
		res := render(&fetch.Page{URL: "https://example.com/", Status: 200, Type: kind, Body: []byte(body)}, format)
		if len(res.Images) == 0 && (len(res.Outputs) != 1 || !utf8.ValidString(res.Outputs[0])) {
			t.Errorf("%q", res.Outputs)
		}
	})
}
