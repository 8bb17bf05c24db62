package esrp

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// anyValue generates a document.
func anyValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := []Kind{Null, Bool, Number, String}
		if depth > 0 {
			kinds = append(kinds, Array, Object)
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case Bool:
			return BoolValue(rapid.Bool().Draw(t, "bool"))
		case Number:
			return IntValue(rapid.Int64().Draw(t, "number"))
		case String:
			return StringValue(rapid.String().Draw(t, "string"))
		case Array:
			return Value{Kind: Array, Items: rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "items")}
		case Object:
			o := Value{Kind: Object}
			for _, key := range rapid.SliceOfNDistinct(rapid.String(), 0, 5, rapid.ID).Draw(t, "keys") {
				o.Members = append(o.Members, Member{key, anyValue(depth-1).Draw(t, "member")})
			}
			return o
		}
		return Value{}
	})
}

// shuffleMembers returns the value with the members of each object in another order.
func shuffleMembers(t *rapid.T, v Value) Value {
	if v.Kind == Array {
		v.Items = slices.Clone(v.Items)
		for i := range v.Items {
			v.Items[i] = shuffleMembers(t, v.Items[i])
		}
	}
	if len(v.Members) > 0 {
		v.Members = rapid.Permutation(v.Members).Draw(t, "order")
		for i := range v.Members {
			v.Members[i].Value = shuffleMembers(t, v.Members[i].Value)
		}
	}
	return v
}

// The canonical form does not depend on the order of members, is its own canonical form, and has
// the same content as the document.
func TestCanonicalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(4).Draw(t, "value")
		c, err := v.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Canonical(c); err != nil || !bytes.Equal(again, c) {
			t.Fatalf("again: %s, %v\nfirst: %s", again, err, c)
		}
		if other, err := shuffleMembers(t, v).Canonical(); err != nil || !bytes.Equal(other, c) {
			t.Fatalf("in another order: %s, %v\nfirst: %s", other, err, c)
		}
		back, err := Parse(c)
		if err != nil || !equal(t, back, v) {
			t.Fatalf("%s reads as %v, %v; it was %v", c, back, err, v)
		}
	})
}

// equal compares the content of two values with encoding/json.
func equal(t *rapid.T, a, b Value) bool {
	plain := func(v Value) string {
		c, err := v.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		var any any
		dec := json.NewDecoder(bytes.NewReader(c))
		dec.UseNumber()
		if err := dec.Decode(&any); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		out, err := json.Marshal(any)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	return plain(a) == plain(b)
}

// FuzzCanonical: every accepted document has a canonical form that is its own canonical form and
// that encoding/json reads.
func FuzzCanonical(f *testing.F) {
	for _, v := range readVectors(f).Raw {
		f.Add([]byte(v.Input))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := Canonical(doc)
		var syntax *SyntaxError
		if err != nil {
			if !errors.Is(err, ErrFloat) && !errors.As(err, &syntax) {
				t.Fatalf("%q: %v has no type", doc, err)
			}
			return
		}
		if !json.Valid(doc) || !json.Valid(c) {
			t.Fatalf("%q is no JSON, or %q", doc, c)
		}
		if again, err := Canonical(c); err != nil || !bytes.Equal(again, c) {
			t.Fatalf("%q: canonical %q, and of that %q, %v", doc, c, again, err)
		}
	})
}

// FuzzRecords: a decoded record, written and decoded again, is the same.
func FuzzRecords(f *testing.F) {
	for _, v := range readVectors(f).Typed {
		f.Add(v.Kind == "request", v.Input)
	}
	f.Fuzz(func(t *testing.T, request bool, doc string) {
		kind := "response"
		if request {
			kind = "request"
		}
		r, _, err := decode(kind, doc)
		if err != nil {
			return
		}
		_ = r.ValidateStrictly()
		c, err := r.Value().Canonical()
		if err != nil {
			return // a floating-point number
		}
		again, _, err := decode(kind, string(c))
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		if d, err := again.Value().Canonical(); err != nil || !bytes.Equal(c, d) {
			t.Fatalf("%s\nreads as %s, %v", c, d, err)
		}
	})
}

// An accepted URI names something inside its namespace, below any root, and parses to itself when
// it is written.
func checkURI(t interface {
	Helper()
	Fatalf(string, ...any)
}, uri string,
) {
	t.Helper()
	u, err := ParseURI(uri)
	if err != nil {
		var wrong *URIError
		if !errors.As(err, &wrong) {
			t.Fatalf("%q: %v has no type", uri, err)
		}
		return
	}
	local := filepath.FromSlash(u.Local())
	if !filepath.IsLocal(local) || filepath.Clean(local) != local || !strings.HasPrefix(local, u.Namespace+string(filepath.Separator)) {
		t.Fatalf("%q is %q", uri, local)
	}
	if again, err := ParseURI(u.String()); err != nil || again != u {
		t.Fatalf("%q is written %q, which reads as %v, %v", uri, u, again, err)
	}
}

func FuzzURI(f *testing.F) {
	for _, uri := range append(slices.Clone(hostileURIs), goodURIs...) {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) { checkURI(t, uri) })
}

func TestURIProperties(t *testing.T) {
	piece := rapid.SampledFrom([]string{"..", ".", "/", "//", `\`, "%2e", "%2E", "%2f", "%5c", "%00", "%25", "%", "a", "ns", "~", "C:", "\x00", "é", " ", "?", "#", "con", "%c0%ae", "。"})
	rapid.Check(t, func(t *rapid.T) {
		checkURI(t, Scheme+strings.Join(rapid.SliceOfN(piece, 1, 10).Draw(t, "pieces"), ""))
	})
}

var goodURIs = []string{
	"workspace://a/b", "workspace://artifacts/sha256/" + strings.Repeat("a", 64), "workspace://a.b_c-D9/x/y.z", "workspace://n/a%20b", "workspace://n/é%C3%A9",
	"workspace://" + strings.Repeat("n", 64) + "/" + strings.Repeat("p", 1024), "workspace://n/a b", "workspace://n/100%25", "workspace://..n/x",
}

var hostileURIs = []string{
	"", "workspace://", "workspace:///etc/passwd", "workspace://n", "workspace://n/", "WORKSPACE://n/x", "file:///etc/passwd", "workspace:/n/x",
	"workspace://../x", "workspace://./x", "workspace://.../x", "workspace://n/..", "workspace://n/../x", "workspace://n/a/../../x", "workspace://n/a..b",
	"workspace://n/%2e%2e/x", "workspace://n/%2E%2e/x", "workspace://n/.%2e/x", "workspace://n/a%2fb", "workspace://n/a%2Fb", "workspace://n/a%5Cb", `workspace://n/a\b`,
	`workspace://n/..\x`, "workspace://n//x", "workspace://n/a//b", "workspace://n/a/", "workspace://n/./x", "workspace://n/a/.", "workspace://n/%00", "workspace://n/a\x00b",
	"workspace://n/a\nb", "workspace://n/%0a", "workspace://n/%c2%85", "workspace://n/%zz", "workspace://n/%", "workspace://n/%ff", "workspace://n\\m/x", "workspace://n%2e/x",
	"workspace://n:80/x", "workspace://u@n/x", "workspace://é/x", "workspace:// /x", "workspace://n/x?y", "workspace://n/x#y",
	"workspace://" + strings.Repeat("n", 65) + "/x", "workspace://n/" + strings.Repeat("p", 1025),
}

func TestURIs(t *testing.T) {
	for _, uri := range hostileURIs {
		if u, err := ParseURI(uri); err == nil {
			t.Errorf("%q is %v", uri, u)
		}
	}
	for _, uri := range goodURIs {
		if _, err := ParseURI(uri); err != nil {
			t.Error(err)
		}
		checkURI(t, uri)
	}
	if u, err := ParseURI("workspace://n/a%20b"); err != nil || u.Path != "a b" || u.String() != "workspace://n/a%20b" {
		t.Errorf("%v, %v", u, err)
	}
	for ns, reserved := range map[string]bool{"system": true, "tmp": true, "cache": true, "System": false, "artifacts": false} {
		if u, err := ParseURI(Scheme + ns + "/x"); err != nil || u.Reserved() != reserved {
			t.Errorf("%s: %v, %v", ns, u.Reserved(), err)
		}
	}
}

// No URI that ParseURI accepts opens a file outside an os.Root, also not through links: the root
// blocks what the rules of ParseURI miss.
func TestURIsBelowARoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "root", "n"), 0o700); err != nil {
		t.Fatal(err)
	}
	needs.Symlink(t, dir, filepath.Join(dir, "root", "n", "out"))
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, uri := range append(hostileURIs, "workspace://n/out/secret") {
		u, err := ParseURI(uri)
		if err != nil {
			continue
		}
		if f, err := root.Open(u.Local()); err == nil {
			_ = f.Close()
			t.Errorf("%q was opened", uri)
		}
	}
}
