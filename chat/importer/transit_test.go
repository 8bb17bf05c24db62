package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func decode(s string) (string, error) {
	v, err := decodeTransit(strings.NewReader(s), 1<<16, 20)
	if err != nil {
		return "", err
	}
	b, err := appendJSON(nil, v)
	return string(b), err
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`["~#'","hi"]`:           `"hi"`,
		`{"~#'":1}`:              `1`,
		`[]`:                     `[]`,
		`["^ "]`:                 `{}`,
		`[null,true,1.50,"<a>"]`: `[null,true,1.50,"<a>"]`,
		`["~~a","~^a","~` + "`" + `a","~","","~xa"]`:                `["~a","^a","` + "`" + `a","~","","~xa"]`,
		`["~:a","~$b","~c;","~rhttp://x","~bAA==","~zNaN"]`:         `["a","b",";","http://x","AA==","NaN"]`,
		`["~_","~?t","~?f","~i9007199254740993","~n123","~d1.5E3"]`: `[null,true,false,9007199254740993,123,1.5E3]`,
		`["~u531a379e-31bb-4ce1-8690-158dceb64be6"]`:                `["531a379e-31bb-4ce1-8690-158dceb64be6"]`,
		`["~m1795167590815","~t1985-04-12T23:20:50.520Z"]`:          `["2026-11-20T09:39:50.815Z","1985-04-12T23:20:50.52Z"]`,
		`["~#list",5]`:                         `{"tag":"list","value":5}`,
		`["~#list",[1,2]]`:                     `[1,2]`,
		`{"~#list":[1]}`:                       `[1]`,
		`["~#cmap",[1,"a","~:k",null,true,2]]`: `{"1":"a","k":null,"true":2}`,
		`["~#point",["^ ","~:x",1]]`:           `{"tag":"point","value":{"x":1}}`,
		`{"~:a/b":{"k":["~#set",[]]},"~i1":2}`: `{"a/b":{"k":[]},"1":2}`,
		// Codes: keywords, tags and keys of four UTF-16 units or more get one, in order.
		`[["^ ","~:role","~:user","path",1],["^ ","^0","^1","^2",2]]`: `[{"role":"user","path":1},{"role":"user","path":2}]`,
		`["path",["^ ","abc",1,"😀😀",2],"~:ab",["^ ","^0",3,"^1",4]]`:  `["path",{"abc":1,"😀😀":2},"ab",{"😀😀":3,"ab":4}]`,
		`[["~#list",[1]],["^0",[2]]]`:                                 `[[1],[2]]`,
	} {
		if got, err := decode(in); err != nil || got != want {
			t.Errorf("%s\n got %s %v\nwant %s", in, got, err, want)
		}
	}
}

// After 1936 strings the codes start over.
func TestCacheCodesStartOver(t *testing.T) {
	var b strings.Builder
	for i := range cacheSize {
		fmt.Fprintf(&b, `"~:key%d",`, i)
	}
	full := b.String()
	if got, err := decode("[" + full + `"^0","^[[","^10"]`); err != nil || !strings.HasSuffix(got, `,"key0","key1935","key44"]`) {
		t.Errorf("a full cache: %v, ...%s", err, got[max(0, len(got)-40):])
	}
	if got, err := decode("[" + full + `"~:again","^0"]`); err != nil || !strings.HasSuffix(got, `,"again","again"]`) {
		t.Errorf("one more: %v, ...%s", err, got[max(0, len(got)-40):])
	}
}

func TestInvalidTransit(t *testing.T) {
	for _, in := range []string{
		``, `[`, `["^ ","~:a"]`, `["^ ","~:a",1`, `["^0"]`, `["^"]`, `["^\u007f"]`, `["^000"]`, `[1,"~#list"]`, `["~#list",[1],2]`, `["~#list"]`, `[1] [2]`,
		`{"a":1`, `["~ix"]`, `["~mx"]`, `["~tx"]`, `["~m99999999999999999"]`, `[1,"^ "]`, `["~dNaN"]`, "[\"a\x00\"]", `{"~#list":[1],"b":2}`,
		`["~#cmap",[[1],2]]`, `["^ ",["^ "],2]`, `{"a":1,"~#list":2}`,
	} {
		if got, err := decode(in); err == nil {
			t.Errorf("%s: %s", in, got)
		}
	}
	if _, err := decode(`["^ ","~:a",`); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut file: %v", err)
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	for name, in := range map[string]string{
		"deep":     strings.Repeat("[", 21) + strings.Repeat("]", 21),
		"large":    `["` + strings.Repeat("x", 1<<16) + `"]`,
		"expanded": `["~:` + long + `"` + strings.Repeat(`,"^0"`, 64) + `]`,
	} {
		if _, err := decode(in); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decode(strings.Repeat("[", 20) + strings.Repeat("]", 20)); err != nil {
		t.Error(err)
	}
}

func TestGet(t *testing.T) {
	m := transitMap{{"a", 1}, {"b", nil}, {"a", 2}}
	if m.Get("a") != 2 || m.Get("c") != nil || !m.Has("b") || m.Has("c") {
		t.Error(m)
	}
}

// Every decoded value can be written, and is JSON.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`["^ ","~:role","user","^0",["~#list",[1]]]`, `{"~#set":["~m1","~u0"]}`, `["~#cmap",[[1],2]]`, `["~i1","~d1e9","~?t","~_"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := decode(s)
		if err == nil && !json.Valid([]byte(got)) {
			t.Errorf("%s: %s", s, got)
		}
		if err != nil && strings.Contains(err.Error(), "as JSON") {
			t.Error(err)
		}
	})
}
