package mcp

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func readField(t *testing.T, schema string) field {
	t.Helper()
	f, err := readForm(json.RawMessage(`{"type":"object","properties":{"x":` + schema + `}}`))
	if err != nil || len(f.fields) != 1 {
		t.Fatalf("%s: %+v, %v", schema, f, err)
	}
	return f.fields[0]
}

// A user's answer becomes a value that the schema allows, or is refused with a reason.
func TestFieldRead(t *testing.T) {
	for _, c := range []struct {
		schema, answer string
		want           any // the text of an error if it begins with !
	}{
		{`{"type":"string"}`, " a b ", "a b"},
		{`{"type":"string","minLength":2,"maxLength":3}`, "ü", "!2 to 3 characters"},
		{`{"type":"string","minLength":2}`, "üü", "üü"},
		{`{"type":"string","format":"email"}`, "a@b.example", "a@b.example"},
		{`{"type":"string","format":"email"}`, "A <a@b.example>", "!is not a valid email"},
		{`{"type":"string","format":"uri"}`, "example", "!is not a valid uri"},
		{`{"type":"string","format":"date"}`, "2026-02-30", "!is not a valid date"},
		{`{"type":"string","format":"date-time"}`, "2026-02-03T04:05:06Z", "2026-02-03T04:05:06Z"},
		{`{"type":"number","minimum":0}`, "-1", "!at least 0"},
		{`{"type":"number"}`, "1e3", 1000.0},
		{`{"type":"number"}`, "NaN", "!is not a number"},
		{`{"type":"integer"}`, "1.5", "!is not a whole number"},
		{`{"type":"integer","maximum":9}`, "9", 9.0},
		{`{"type":"boolean"}`, "YES", true},
		{`{"type":"boolean"}`, "false", false},
		{`{"type":"boolean"}`, "maybe", "!Yes or No"},
		{`{"type":"string","enum":["a","b"],"enumNames":["First"]}`, "first", "a"},
		{`{"type":"string","oneOf":[{"const":"a","title":"b"},{"const":"b","title":"a"}]}`, "a", "a"},
		{`{"type":"string","enum":["a"]}`, "c", "!not one of: a"},
		{`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}`, " b , a,b", []string{"b", "a"}},
		{`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}`, ",", "!at least 1 of them"},
	} {
		got, err := readField(t, c.schema).parseAnswer(c.answer)
		if text, ok := c.want.(string); ok && strings.HasPrefix(text, "!") {
			if err == nil || !strings.Contains(err.Error(), text[1:]) {
				t.Errorf("%s, %q: %v, %v", c.schema, c.answer, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, %q: %#v, %v", c.schema, c.answer, got, err)
		}
	}
}

func TestReadForm(t *testing.T) {
	f, err := readForm(json.RawMessage(`{"type":"object","required":["z"],"properties":{"z":{"type":"string"},"a":{"type":"integer","default":1.5},"m":{"type":"boolean","default":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, field := range f.fields {
		names = append(names, field.name)
	}
	if !slices.Equal(names, []string{"z", "a", "m"}) || !f.fields[0].required || f.fields[1].defaultValue != nil || f.fields[2].defaultValue != true {
		t.Errorf("%+v", f)
	}
	for schema, why := range map[string]string{
		``:                  "cannot read",
		`[]`:                "cannot read",
		`{"type":"string"}`: "of type object",
		`{"type":"object","properties":{"x":{"type":"array","items":{"type":"string"}}}}`: "without values to choose from",
		`{"type":"object","properties":{"x":{"type":["string"]}}}`:                        "cannot read",
		`{"type":"object","properties":{"x":{}}}`:                                         "unsupported type",
	} {
		if _, err := readForm(json.RawMessage(schema)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// For any form of a server, an answer that eca accepts is valid for that form.
func FuzzForm(f *testing.F) {
	f.Add(`{"type":"object","properties":{"x":{"type":"string","enum":["a"]},"y":{"type":"array","items":{"enum":["b"]}}}}`, "a")
	f.Add(`{"type":"object","properties":{"x":{"type":"number","minimum":1,"default":2}}}`, "1")
	f.Fuzz(func(t *testing.T, schema, answer string) {
		form, err := readForm(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, field := range form.fields {
			_ = field.describe()
			field.answerOptions()
			value, err := field.parseAnswer(answer)
			if err != nil {
				continue
			}
			raw, err := json.Marshal(value)
			var back any
			if err != nil || json.Unmarshal(raw, &back) != nil {
				t.Fatalf("%#v: %v", value, err)
			}
			if !field.accepts(back) {
				t.Errorf("%+v does not take %s", field, raw)
			}
		}
	})
}
