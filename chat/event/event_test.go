package event

import (
	"encoding/json"
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

// Every type with a kind can be decoded, to itself, and its kind is its own.
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

// A body in memory equals the body after a restart, also where a model or a provider
// wrote JSON with white space: a request that is made of it must not change.
func TestStoredIsWhatComesBack(t *testing.T) {
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
		want := Stored(v.Interface().(Body))
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

// A type that All does not list would be lost at the next start.
func TestAllListsEveryType(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"Unknown": true}
	for _, b := range All() {
		listed[reflect.TypeOf(b).Name()] = true
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "row" {
			if name := f.Recv.List[0].Type.(*ast.Ident).Name; !listed[name] {
				t.Errorf("%s has a row, but All does not list it", name)
			}
		}
	}
}

// docs/storage.md describes each event that is stored.
func TestEventsAreDescribed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "storage.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range All() {
		kind := string(KindOf(b))
		family, _, _ := strings.Cut(kind, "_")
		if !Volatile(b) && !strings.Contains(string(page), "`"+kind+"`") && !strings.Contains(string(page), "`"+family+"_*`") {
			t.Errorf("docs/storage.md says nothing about %s", kind)
		}
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
