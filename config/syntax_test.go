package config

import (
	"path/filepath"
	"testing"
)

// The mistake in invalid JSON is reported at its place.
func TestMistakesInJSON(t *testing.T) {
	const single, closing = `invalid JSON: single quotes; use double quotes (")`, "invalid JSON: missing closing quote"
	for text, want := range map[string]string{
		"{'a': 1}":                               "1:2: error: " + single,
		"{\n  \"a\": 1,\n  \"b\": 'x'\n}":        "3:8: error: " + single,
		"{\"a\": 'it\",\n\"b\": 1}":              "1:7: error: " + single,
		"{\"a\": “b”}":                           `1:7: error: invalid JSON: typographic quotes; use double quotes (")`,
		"{\n  \"a\": \"b,\n  \"c\": 1\n}":        "2:8: error: " + closing,
		"{\n  \"a: 1,\n  \"c\": 1\n}":            "2:3: error: " + closing,
		"{\n  \"a\": \"b\n}":                     "2:8: error: " + closing,
		"{\"a\": \"b":                            "1:7: error: " + closing,
		"{\"a\": \"b\\":                          "1:7: error: " + closing,
		"{ // \"\n  \"a\": [\"b, \"c\"]\n}":      "2:14: error: " + closing + " in this line",
		"{\n  \"a\": {\"b\": \"c}, \"d\": 1}\n}": "2:20: error: " + closing + " in this line",
		"{\"a\": \"x\" /* \" */\n \"b\": \"y\"}": `2:2: error: invalid JSON: a comma is missing before this`,
		"{\"a\" 1}":                              `1:6: error: invalid JSON: a colon is missing before this`,
		"{\"a\": ,}":                             `1:7: error: invalid JSON: a value is missing before this`,
		"{\"a\":\u00a01}":                        `1:6: error: invalid JSON: there is an invisible character here (a non-breaking space, U+00A0); delete it or replace it with a space`,
		"{\"a\": 1,\u200b\"b\": 2}":              `1:9: error: invalid JSON: there is an invisible character here (U+200B); delete it or replace it with a space`,
		"{\"a\": 1}\n}":                          "2:1: error: invalid JSON: there is one } too many here",
		"{\"a\": 1":                              `1:8: error: invalid JSON: the text ends before the JSON is complete; perhaps } is missing`,
		"a:\n  b: 1\n":                           `1:1: error: invalid JSON: a is not a value; the file must be an object in braces ({), and texts must be in double quotes`,
		"{\"a\": True}":                          `1:7: error: invalid JSON: True is not a value; the file must be an object in braces ({), and texts must be in double quotes`,
		"\xff\xfe{\x00}\x00":                     "1: error: the text is UTF-16; save it as UTF-8",
		"\xfe\xff\x00{\x00}":                     "1: error: the text is UTF-16; save it as UTF-8",
		"{\x00\"\x00a\x00\"\x00:\x001\x00}\x00":  "1: error: the text is UTF-16; save it as UTF-8",
		"\x00{\x00}":                             "1: error: the text is UTF-16; save it as UTF-8",
	} {
		home := t.TempDir()
		path := filepath.Join(home, "config.json")
		write(t, path, text)
		found := Load(Inputs{Getenv: env(nil), ConfigHome: home}).Findings()
		if len(found) != 1 || found[0].String() != path+":"+want {
			t.Errorf("%q: %v, want %s", text, found, want)
		}
	}
}
