package redact

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rules returns regular expressions for text that looks like a secret, and their replacements. They
// are the specification of the patterns: each rule is applied to the whole text, one after the other.
func rules() (list []*regexp.Regexp, to []string) {
	add := func(expr, replacement string) {
		list, to = append(list, regexp.MustCompile(expr)), append(to, replacement)
	}
	for _, expr := range []string{
		`\bsk-[A-Za-z0-9_-]{16,}`,
		`\bgh[pousr]_[A-Za-z0-9]{20,}`,
		`\bgithub_pat_[A-Za-z0-9_]{20,}`,
		`\bglpat-[A-Za-z0-9_-]{16,}`,
		`\bAKIA[0-9A-Z]{16}\b`,
		`\bAIza[A-Za-z0-9_-]{30,}`,
		`\bxox[abprs]-[A-Za-z0-9-]{10,}`,
		`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`,
		`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{16,}`,
		`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`,
	} {
		add(expr, Mark)
	}
	add(`(?i)("(?:key|[a-z_-]*api[-_]?key|[a-z_-]*password|[a-z_-]*token|[a-z_-]*secret|authorization)"\s*:\s*")(?:[^"\\]|\\.)*"`, "${1}"+Mark+`"`)
	add(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@"'<>]+@`, "${1}"+Mark+"@")
	add(`(?i)([?&](?:[a-z0-9_-]*(?:key|token|secret|passw(?:or)?d|sig|signature))=)[^&\s#"'<>]+`, "${1}"+Mark)
	return list, to
}

// FuzzString checks that String, which needs one pass, has the same result as all rules in turn.
func FuzzString(f *testing.F) {
	for _, text := range []string{
		"sk-abcdefghijklmnopqrstuvwx and sk-sk-sk-sk-sk-sk-sk-sk-", "ghp_abcdefghijklmnopqrstuvwxyz0123 ghP_abcdefghijklmnopqrstuvwxyz0123",
		"github_pat_0123456789012345678901 glpat-0123456789012345678901", "AKIA-AKIAABCDEFGHIJKLMNOP AKIAABCDEFGHIJKLMNOPQ",
		"AIza0123456789012345678901234567890 xoxb-0123456789-0123", "eyJ-eyJ-eyJ0123456789.0123456789.x eyJ0123456789-eyJ0123456789.0123456789.",
		"Bearer bearer  0123456789abcdef+/= BEARER\n0123456789abcdef", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END X-----END PRIVATE KEY-----END RSA PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY----- -----BEGIN PRIVATE KEY-----",
		`{"key" : "a\"b", "API-KEY":"","my-token":"x"token":"y","authorization":"\` + "\n" + `", "x-authorization":"z", "apikey": "abc}`,
		"http://u:p@h/?key=a&api-token=b?sig=c#d 1a.b://x@ ://y@ 1://z@ &passwd=\xff&password=e&PASSWRD=f&signature=&secret=g",
		"Bearer my-own-secret-0123456789 my-own-secret my-own mY-own-secret ?key=my-own", `"token":"my-own-secret"`, "my-own-secremy-own-secret",
	} {
		f.Add(text, "my-own-secret", "my-own")
	}
	list, to := rules()
	f.Fuzz(func(t *testing.T, text, one, two string) {
		// Skip secrets that can match a replacement. Skip the long s and the Kelvin sign, which
		// case-insensitive expressions treat as s and k.
		if strings.ContainsAny(one+two, "[]") || strings.Contains(Mark, one) || strings.Contains(Mark, two) || strings.ContainsAny(text, "\u017f\u212a") {
			return
		}
		r := New(one, two)
		want := text
		for _, k := range r.values {
			want = strings.ReplaceAll(want, k, Mark)
		}
		known := want
		for i, rule := range list {
			want = rule.ReplaceAllString(want, to[i])
		}
		if got := r.String(text); got != want {
			t.Errorf("%q with %q:\ngot  %q\nwant %q", text, r.values, got, want)
		}
		if got := Known(one, two).String(text); got != known {
			t.Errorf("known values of %q:\ngot  %q\nwant %q", text, got, known)
		}
		if !slices.IsSortedFunc(r.values, func(a, b string) int { return len(b) - len(a) }) {
			t.Errorf("order %q", r.values)
		}
	})
}

// BenchmarkString compares ordinary text with text that contains secrets, or only their beginnings.
func BenchmarkString(b *testing.B) {
	const size = 8 << 20
	r := New("a-value-of-the-user", "another-value-0123456789", "f00dfeedf00dfeedf00dfeed")
	for name, piece := range map[string]string{
		"Code":  "func main() { return x.y(z) } // goes on with the lazy dog, 12345 and task-list\n",
		"JSON":  `{"id":12345,"name":"The quick brown fox","text":"jumps over the lazy dog\n","list":[true,null]},` + "\n",
		"Begun": "eyJ-0123456789.-sk-x -----BEGIN PRIVATE KEY----- \"token\": ?key= http://x ",
		"Found": `{"token":"abc"} sk-abcdefghijklmnopqrstuvwx http://u:p@host/?key=a-value-of-the-user ` + strings.Repeat("some text ", 20),
	} {
		text := strings.Repeat(piece, size/len(piece)+1)[:size]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				r.String(text)
			}
		})
	}
	b.Run("Floor", func(b *testing.B) { // one table lookup per byte
		text := strings.Repeat("0123456789abcdef", size/16)
		table := [256]uint8{'x': 1}
		b.SetBytes(size)
		n := 0
		for b.Loop() {
			for i := range len(text) {
				n += int(table[text[i]])
			}
		}
		if n != 0 {
			b.Fatal(n)
		}
	})
}

// BenchmarkNew measures a redactor that cleans only one line.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New("a-value-of-the-user", "another-value-0123456789").String("one line")
	}
}
