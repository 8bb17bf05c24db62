package event

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// For every kind, the decoder returns a body of this kind, and an encoded body decodes to an equal one.
func TestRoundTrip(t *testing.T) {
	d := NewDecoder()
	for kind := range d.kinds {
		b, err := d.Body(kind, Version, []byte(`{}`))
		if err != nil || KindOf(b) != kind {
			t.Fatalf("%s decodes to %T (%v)", kind, b, err)
		}
		v := reflect.New(reflect.TypeOf(b)).Elem()
		fill(v, 1)
		want := v.Interface().(Body)
		version, raw, err := EncodeBody(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Body(kind, version, raw)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", kind, err, cmp.Diff(want, got))
		}
	}
}

// A body in memory equals the body after a restart, even if a model or a provider wrote JSON with white
// space, because requests must not change after a restart.
func TestStoredFormIsStable(t *testing.T) {
	d := NewDecoder()
	for kind := range d.kinds {
		b, err := d.Body(kind, Version, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		v := reflect.New(reflect.TypeOf(b)).Elem()
		fill(v, 1)
		for i := range v.NumField() {
			if field := v.Field(i); field.Type() == reflect.TypeFor[json.RawMessage]() {
				field.SetBytes([]byte("{ \"a\" : [1.0, 2e1],\n\"<b>\": \"\\u00e9\" }"))
			}
		}
		want := StoredForm(v.Interface().(Body))
		version, raw, err := EncodeBody(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Body(kind, version, raw)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", kind, err, cmp.Diff(want, got))
		}
	}
}

var update = flag.Bool("update", false, "rewrite the table of docs/storage.md")

// All lists each type with a row; events of other types would be lost at the next start. docs/storage.md
// contains the comments of the rows, and mentions the events without one.
func TestEachRowIsListedAndDescribed(t *testing.T) {
	comments := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "row" {
				comments[f.Recv.List[0].Type.(*ast.Ident).Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
	}
	page := filepath.Join("..", "..", "docs", "storage.md")
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- events -->\n", "<!-- end -->"
	before, rest, _ := strings.Cut(string(data), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	table := "| kind | meaning |\n|---|---|\n"
	for _, b := range All() {
		name, kind := reflect.TypeOf(b).Name(), string(KindOf(b))
		comment, hasRow := comments[name]
		family, _, _ := strings.Cut(kind, "_")
		switch {
		case !hasRow:
			t.Errorf("All lists %s twice", name)
		case comment != "":
			table += "| `" + kind + "` | " + strings.TrimSuffix(comment, ".") + " |\n"
		case !Volatile(b) && !strings.Contains(before+after, "`"+kind+"`") && !strings.Contains(before+after, "`"+family+"_*`"):
			t.Errorf("the row of %s has no comment, and %s does not describe it", name, page)
		}
		delete(comments, name)
	}
	delete(comments, "Unknown")
	for name := range comments {
		t.Errorf("%s has a row, but All does not list it", name)
	}
	want := before + begin + table + end + after
	if *update && !t.Failed() {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(data) != want {
		t.Errorf("%s is out of date: go test ./chat/event -update", page)
	}
}

func TestUnknownSurvives(t *testing.T) {
	d := NewDecoder()
	for _, c := range []struct {
		kind    Kind
		version int
	}{{"brand_new", 1}, {"text", Version + 1}} {
		b, err := d.Body(c.kind, c.version, []byte(`{"text":"x","y":[1]}`))
		if err != nil || KindOf(b) != c.kind {
			t.Fatal(b, err)
		}
		version, raw, err := EncodeBody(b)
		if err != nil || version <= Version || string(raw) != `{"text":"x","y":[1]}` {
			t.Errorf("%s: version %d, %s, %v", c.kind, version, raw, err)
		}
	}
	if _, err := d.Body("text", Version, []byte(`{"text":7}`)); err == nil {
		t.Error("a body that contradicts its kind was accepted")
	}
}

// fill sets every field to something that is not zero.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+i)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"raw":true}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.String:
		v.SetString("s" + string(rune('a'+n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n) / 2)
	default:
		panic("fill: " + v.Kind().String())
	}
}
