package oauth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseChallenge(t *testing.T) {
	const meta = "https://mcp.example/.well-known/oauth-protected-resource"
	for header, want := range map[string]Challenge{
		``:       {},
		`Bearer`: {},
		`bearer resource_metadata="` + meta + `"`:                                         {Metadata: meta},
		`Bearer error="insufficient_scope", scope="a b",resource_metadata="` + meta + `"`: {"insufficient_scope", []string{"a", "b"}, meta},
		`Basic realm="x, Bearer scope=\"no\"", Bearer scope=a`:                            {Scopes: []string{"a"}},
		`Negotiate dGVzdA==, Bearer scope = "a"`:                                          {Scopes: []string{"a"}},
		`DPoP algs="ES256", error="x"`:                                                    {},
		`Bearer scope="a", scope="b"`:                                                     {Scopes: []string{"a"}},
		`Bearer scope="a", Bearer scope="b"`:                                              {Scopes: []string{"a"}},
		`Bearer scope="unfinished`:                                                        {Scopes: []string{"unfinished"}},
		`scope="a"`:                                                                       {},
		`Bearer realm="r" error="invalid_token"`:                                          {Error: "invalid_token"},
	} {
		if diff := cmp.Diff(want, ParseChallenge([]string{header}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", header, diff)
		}
	}
	if got := ParseChallenge([]string{`Basic realm="x"`, `Bearer scope="a"`}); len(got.Scopes) != 1 {
		t.Errorf("of two headers: %+v", got)
	}
}

// Reading any answer of a server ends, and every result is part of the answer.
func FuzzParseChallenge(f *testing.F) {
	f.Add(`Bearer realm="x", resource_metadata="https://x/", scope="a b"`)
	f.Add(`Basic YWJj=, Bearer error=x`)
	f.Add(`Bearer ="\"`)
	f.Add(`= = =,,`)
	f.Fuzz(func(t *testing.T, header string) {
		got := ParseChallenge([]string{header})
		plain := strings.ReplaceAll(header, `\`, "")
		for _, piece := range append(got.Scopes, strings.Fields(strings.TrimSuffix(got.Error, "…"))...) {
			if !strings.Contains(plain, strings.ReplaceAll(piece, `\`, "")) {
				t.Errorf("%q was not in %q", piece, header)
			}
		}
		// Each reads the output of the other.
		if clean := strings.Map(func(r rune) rune {
			if r < ' ' || r == '"' || r == '\\' || r > '~' {
				return -1
			}
			return r
		}, header); len(clean) < maxChallenge/2 {
			if back := ParseChallenge([]string{`Bearer resource_metadata="` + clean + `"`}); back.Metadata != clean {
				t.Errorf("%q came back as %q", clean, back.Metadata)
			}
		}
	})
}
